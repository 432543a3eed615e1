/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One writer and one reader of a ring (prov/tcp/local/ring.h, ready.h), on a machine whose stores are delayed (TSO, a store
 * buffer for each process; weaker machines are covered by the release and acquire accesses in the code).
 *
 * Each process has its own copy of what it has stored and the other may not see yet. A `drain` step may happen at any
 * time; a full barrier and an atomic read-modify-write wait until the buffer is empty.
 *
 * A record that is open is none to the reader, and the writer tells only of the closed one: nothing of it is modelled.
 *
 * A sleep has a number, so that a late answer to one sleep does not end another; the model counts few, and does not wrap.
 *
 * Claim: every message is taken. Spin reports an end state in which a process still waits ("invalid end state").
 *
 * NO_FENCE_TELL, NO_FENCE_ARM, NO_FENCE_COOL and NO_FENCE_ROOM leave out one barrier: Spin must then find such a state.
 */
#define MESSAGES	3
#define ROOM		1	/* messages that the ring holds */

/* What all see: memory. Buffers of depth 2 for each process, by variable, since a store to one of them is the last. */
byte put = 0, taken = 0;	/* messages */
bit ready = 0, wants_room = 0;
byte asleep = 0;		/* the number of the sleep, or 0 */
byte wake = 0;			/* bytes on the socket to the reader */
bit wake_writer = 0;		/* the writer's own bit: it looks at the ring's room */

/* pending stores of the writer: put, wants_room; of the reader: asleep, taken, in this order of the program */
chan wbuf = [4] of { byte, byte };	/* variable, value */
chan rbuf = [4] of { byte, byte };
#define PUT	1
#define WANTS	2
#define ASLEEP	3
#define TAKEN	4

inline apply(var, val)
{
	if
	:: var == PUT -> put = val
	:: var == WANTS -> wants_room = val
	:: var == ASLEEP -> asleep = val
	:: var == TAKEN -> taken = val
	fi
}

/* The store buffers are drained at any time. */
active proctype writer_buffer()
{
	byte var, val;
end:	do
	:: atomic { wbuf?var,val -> apply(var, val) }
	od
}

active proctype reader_buffer()
{
	byte var, val;
end:	do
	:: atomic { rbuf?var,val -> apply(var, val) }
	od
}

active proctype writer()
{
	byte n = 0;		/* written */
	byte sleep;

	do
	:: n < MESSAGES ->
		if
		:: n - taken < ROOM ->
			n++;
			wbuf!PUT,n;
			/* tcp_ready_tell() */
#ifndef NO_FENCE_TELL
			empty(wbuf);
#endif
			if
			:: ready -> skip
			:: else -> atomic { empty(wbuf) -> ready = 1 }
			fi;
			if
			:: asleep ->
				sleep = asleep;
				if
				:: sleep ->
					wake++;
					/* tcp_ready_woken() */
					atomic { empty(wbuf);
						if
						:: asleep == sleep -> asleep = 0
						:: else
						fi
					}
				:: else
				fi
			:: else
			fi
		:: else ->
			/* the ring is full: tcp_ring_want_room() */
			wbuf!WANTS,1;
#ifndef NO_FENCE_ROOM
			empty(wbuf);
#endif
			if
			:: n - taken < ROOM -> skip
			:: else -> wake_writer -> wake_writer = 0
			fi
		fi
	:: else -> break
	od
}

active proctype reader()
{
	byte got = 0;		/* taken */
	bit hot = 0, was, found;
	byte sleeps = 0;

	do
	:: got < MESSAGES ->
		found = 0;
		/* a look: a hot ring is looked at, another one if its bit is set, which stays set */
		if
		:: hot || ready ->
			hot = 1;
			if
			:: put > got ->
				found = 1;
				got++;
				/* tcp_ring_tell() */
				rbuf!TAKEN,got;
				empty(rbuf);
				if
				:: wants_room ->
					atomic { was = wants_room; wants_room = 0 };
					if
					:: was -> wake_writer = 1
					:: else
					fi
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		if
		:: !found && hot ->
			/* it may cool: the bit is cleared, and the ring looked at once more (which the next turn does, as if
			 * it were hot) */
			if
			:: true ->
#ifdef NO_FENCE_COOL
				hot = 0;
				ready = 0
#else
				atomic { empty(rbuf) -> ready = 0 };
				hot = 0;
				if
				:: put > got -> hot = 1; ready = 1
				:: else
				fi
#endif
			:: true
			fi
		:: !found && !hot ->
			/* it may sleep: ready_look_and_arm() */
			sleeps++;
			rbuf!ASLEEP,sleeps;
#ifndef NO_FENCE_ARM
			empty(rbuf);
#endif
			if
			:: ready
			:: else ->
				wake > 0;	/* epoll_wait() */
				wake--
			fi
		:: !found && hot ->
			/* a thread may also sleep while the ring is hot: it is looked at after the barrier */
			sleeps++;
			rbuf!ASLEEP,sleeps;
#ifndef NO_FENCE_ARM
			empty(rbuf);
#endif
			if
			:: put > got
			:: else ->
				wake > 0;
				wake--
			fi
		:: found
		fi
	:: else -> break
	od
}
