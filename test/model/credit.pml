/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credit and rendezvous of tcp (prov/tcp/message/msg.c, rndv.c, stream/rx.c tcp_rx_credit()): two peers, three messages
 * each way. A message is sent at once (TCP_WIRE_MSG) while there is credit, otherwise announced (XRTS) and sent when a
 * receive has taken it (XCTS, XDATA). A kept message gives its credit back (CREDIT) when a receive takes it.
 *
 * The applications post their receives one after the other, each when the one before is complete, from the first message
 * to the last or from the last to the first. The stream holds two frames; what does not fit waits in tx.queue.
 *
 * Claims: each message is received once; no more is kept than the credit allows; credit never exceeds the limit.
 * NO_ANNOUNCE (a message waits for credit), NO_LIMIT (messages need no credit), TWICE (a message gives back its credit
 * when it is kept, and when it is taken) each break one.
 */
#define MESSAGES	3
#define CREDIT_MAX	1	/* messages of one peer that the other keeps */

mtype = { MSG, XRTS, XCTS, XDATA, CREDIT };

chan stream[2] = [2] of { mtype, byte };	/* read by this peer */
chan queue[2] = [8] of { mtype, byte };		/* tx.queue of this peer */
byte received[2];				/* bit n: message n was received by this peer */

#define GIVE(frame, n)	assert(nfull(queue[me])); queue[me]!frame,n

/* A receive for message `wanted` is posted, and the message is here. */
inline take()
{
	if
	:: kept & (1 << wanted) ->
		kept = kept & ~(1 << wanted);
		kept_cnt--;
		GIVE(CREDIT, 1);
		complete()
	:: else ->
		announced = announced & ~(1 << wanted);
		asked = asked | (1 << wanted);
		posted = 0;
		GIVE(XCTS, wanted)
	fi
}

inline complete()
{
	assert(!(received[me] & (1 << wanted)));
	received[me] = received[me] | (1 << wanted);
	posted = 0;
	done++;
	if
	:: backwards && wanted -> wanted--
	:: !backwards && wanted < MESSAGES - 1 -> wanted++
	:: else
	fi
}

inline handle()
{
	if
	:: frame == MSG && posted && n == wanted ->	/* tcp_msg_start(): straight into the receive */
		GIVE(CREDIT, 1);
		complete()
	:: frame == MSG && !(posted && n == wanted) ->
		kept = kept | (1 << n);
		kept_cnt++;
		assert(kept_cnt <= CREDIT_MAX);
#ifdef TWICE
		GIVE(CREDIT, 1)
#endif
	:: frame == XRTS && posted && n == wanted ->	/* tcp_rndv_rts() */
		asked = asked | (1 << n);
		posted = 0;
		GIVE(XCTS, n)
	:: frame == XRTS && !(posted && n == wanted) ->
		announced = announced | (1 << n)
	:: frame == XCTS ->				/* tcp_rndv_cts() */
		assert(rts & (1 << n));
		rts = rts & ~(1 << n);
		GIVE(XDATA, n)
	:: frame == XDATA ->				/* tcp_rndv_data() */
		assert(asked & (1 << n) && n == wanted);
		asked = asked & ~(1 << n);
		complete()
	:: frame == CREDIT ->				/* tcp_rx_credit() */
		assert(credit + n <= CREDIT_MAX);
		credit = credit + n
	fi
}

proctype peer(bit me)
{
	byte sent = 0, credit = CREDIT_MAX, rts = 0;		/* rts: tx.rts, announced and not asked for */
	byte kept = 0, kept_cnt = 0, announced = 0, asked = 0;	/* asked: msg.rndv */
	byte wanted = 0, done = 0, n;
	bit backwards, posted = 0;
	mtype frame;

	if
	:: backwards = 0
	:: backwards = 1; wanted = MESSAGES - 1
	fi;
end:	do
#ifdef NO_LIMIT
	:: atomic { sent < MESSAGES -> GIVE(MSG, sent); sent++ }
#else
	:: atomic { sent < MESSAGES && credit -> credit--; GIVE(MSG, sent); sent++ }
#ifndef NO_ANNOUNCE
	:: atomic { sent < MESSAGES && !credit -> rts = rts | (1 << sent); GIVE(XRTS, sent); sent++ }
#endif
#endif
	:: atomic { done < MESSAGES && !posted && !asked ->
		posted = 1;
		if
		:: (kept | announced) & (1 << wanted) -> take()
		:: else
		fi }
	:: atomic { nempty(queue[me]) && nfull(stream[1 - me]) -> queue[me]?frame,n; stream[1 - me]!frame,n }
	:: atomic { stream[me]?frame,n -> handle() }
	od
}

init {
	atomic { run peer(0); run peer(1) };
	timeout -> assert(received[0] == (1 << MESSAGES) - 1 && received[1] == (1 << MESSAGES) - 1)
}
