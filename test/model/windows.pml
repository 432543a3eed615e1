/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An initiator that copies straight to a region of its target, and the target that closes the region
 * (prov/tcp/local/windows.h), on a machine whose stores are delayed: see ring.pml.
 *
 * Claim: while the initiator copies, the region is open.
 *
 * NO_FENCE_BUSY and NO_FENCE_CLOSE leave out one barrier, NO_GENERATION the change of the permit, NO_WAIT the wait for
 * who is busy: Spin must then find a copy to a closed region.
 */
#define ROUNDS		2	/* regions that are opened and closed */
#define ACCESSES	4

/* What all see: memory. */
byte gen = 0;			/* of the permit */
bit window = 0;			/* in the table of the target */
bit busy = 0;

bit closed = 1;			/* fi_close() has returned, and no other region was opened */

/* pending stores of the target: window, gen; of the initiator: busy */
chan tbuf = [4] of { byte, byte };
chan ibuf = [4] of { byte };
#define WINDOW	1
#define GEN	2

active proctype target_buffer()
{
	byte var, val;
end:	do
	:: atomic { tbuf?var,val ->
		if
		:: var == WINDOW -> window = val
		:: var == GEN -> gen = val
		fi }
	od
}

active proctype initiator_buffer()
{
	byte val;
end:	do
	:: atomic { ibuf?val -> busy = val }
	od
}

active proctype target()
{
	byte round = 0, now = 0;

	do
	:: round < ROUNDS ->
		round++;
		closed = 0;
		tbuf!WINDOW,1;
		now++;
		tbuf!GEN,now;
		/* fi_close() */
		tbuf!WINDOW,0;
#ifndef NO_GENERATION
		now++;
		tbuf!GEN,now;
#endif
#ifndef NO_FENCE_CLOSE
		empty(tbuf);
#endif
#ifndef NO_WAIT
		busy == 0;
#endif
		closed = 1
	:: else -> break
	od
}

active proctype initiator()
{
	byte n = 0, known_gen = 0, now;
	bit known = 0;

	do
	:: n < ACCESSES ->
		n++;
		now = gen;
		if
		:: now && now != known_gen ->
			/* the kernel reads the table */
			known = window;
			known_gen = now
		:: else
		fi;
		if
		:: now && known ->
			ibuf!1;
#ifndef NO_FENCE_BUSY
			empty(ibuf);
#endif
			if
			:: gen == known_gen ->
				assert(!closed);
				assert(!closed)		/* and at its end */
			:: else
			fi;
			ibuf!0
		:: else
		fi
	:: else -> break
	od
}
