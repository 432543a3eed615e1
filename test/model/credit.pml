/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credit and rendezvous of tcp (prov/tcp/message/msg.c, rndv.c, stream/rx.c tcp_rx_credit()): two peers, three messages
 * each way. A message is sent at once (MSG) while there is credit, otherwise announced (XRTS) and sent when a receive has
 * taken it (XCTS, XDATA). A message that was received, at once or after it was kept, is owed to its sender, who gets
 * CREDIT when half of the limit is owed.
 *
 * The applications post their receives one after the other, each when the one before is complete, from the first message
 * to the last or from the last to the first. The stream holds two frames; what does not fit waits in tx.queue.
 *
 * Claims: each message is received once; no more is kept than the credit allows; credit never exceeds the limit.
 * NO_ANNOUNCE (a message waits for credit), NO_LIMIT (messages need no credit), TWICE (a message gives back its credit
 * when it is kept, and when it is taken) each break one.
 *
 * With -DREPLAY (replay.pml) it follows logs of the code, with more messages and more credit, of applications that post
 * their receives in any order.
 */
#include "replay.pml"

#ifdef REPLAY
#define MESSAGES	16
#define CREDIT_MAX	limit
#define STREAM_LEN	32
#define QUEUE_LEN	48
byte limit;
#else
#define MESSAGES	3
#ifndef CREDIT_MAX
#define CREDIT_MAX	1	/* messages of one peer that the other keeps */
#endif
#define STREAM_LEN	2
#define QUEUE_LEN	8
#endif

/* Numbers of enum tcp_wire_op. */
#define MSG	1		/* TCP_WIRE_TAG */
#define CREDIT	33
#define XRTS	34
#define XCTS	35
#define XDATA	36

chan stream[2] = [STREAM_LEN] of { byte, byte };	/* read by this peer */
chan queue[2] = [QUEUE_LEN] of { byte, byte };		/* tx.queue of this peer */
int received[2];					/* bit n: message n was received by this peer */

#define GIVE(frame, n)	assert(nfull(queue[me])); queue[me]!frame,n

/* A receive for message n is posted. If the message is here, it takes it. */
inline post()
{
	if
	:: kept & (1 << n) ->
		kept = kept & ~(1 << n);
		kept_cnt--;
		owed++;
		complete()
	:: announced & (1 << n) ->		/* tcp_rndv_take() */
		announced = announced & ~(1 << n);
		asked = asked | (1 << n);
		announced_cnt--;
		asked_cnt++;
		GIVE(XCTS, n)
	:: else ->
		posted = posted | (1 << n)
	fi
}

inline complete()
{
	assert(!(received[me] & (1 << n)));
	received[me] = received[me] | (1 << n);
	posted = posted & ~(1 << n);
	done++
}

inline handle()
{
	if
	:: frame == MSG && posted & (1 << n) ->		/* tcp_msg_start(): straight into the receive */
		owed++;
		complete()
	:: frame == MSG && !(posted & (1 << n)) ->
		kept = kept | (1 << n);
		kept_cnt++;
		assert(kept_cnt <= CREDIT_MAX);
#ifdef TWICE
		owed++
#endif
	:: frame == XRTS && posted & (1 << n) ->	/* tcp_rndv_rts() */
		posted = posted & ~(1 << n);
		asked = asked | (1 << n);
		asked_cnt++;
		GIVE(XCTS, n)
	:: frame == XRTS && !(posted & (1 << n)) ->
		announced = announced | (1 << n);
		announced_cnt++
	:: frame == XCTS ->				/* tcp_rndv_cts() */
		assert(rts & (1 << n));
		rts = rts & ~(1 << n);
		rts_cnt--;
		GIVE(XDATA, n)
	:: frame == XDATA ->				/* tcp_rndv_data() */
		assert(asked & (1 << n));
		asked = asked & ~(1 << n);
		asked_cnt--;
		complete()
	:: frame == CREDIT ->				/* tcp_rx_credit() */
		assert(credit + n <= CREDIT_MAX);
		credit = credit + n
	fi
}

#ifdef REPLAY
#define MAY_SEND	(sent < sends)
#define MAY_WRITE	(IS(E_SENT) && nempty(queue[me]) && queue[me]?[eval(e[0]),eval(e[1])])
#define MAY_READ	(IS(E_GOT) && nempty(stream[me]) && stream[me]?[eval(e[0]),eval(e[1])])
#else
#define MAY_SEND	(sent < MESSAGES)
#define MAY_WRITE	(nempty(queue[me]))
#define MAY_READ	(nempty(stream[me]))
#endif

proctype peer(bit me)
{
	int rts = 0, kept = 0, announced = 0, asked = 0;	/* rts: tx.rts, announced and not asked for */
	int posted = 0;						/* asked: msg.rndv */
	byte sent = 0, credit = CREDIT_MAX, owed = 0;		/* owed: owed.credit */
	byte rts_cnt = 0, kept_cnt = 0, announced_cnt = 0, asked_cnt = 0, done = 0, n = 0;
	byte frame;
#ifdef REPLAY
	byte sends = 0;			/* what the application has sent */
	int gone = 0, told = 0;		/* what has left, and completions of receives that were read */
#else
	bit backwards;
	byte wanted = 0;

	if
	:: backwards = 0
	:: backwards = 1; wanted = MESSAGES - 1
	fi;
#endif
end:	do
#ifdef NO_LIMIT
	:: atomic { MAY_SEND -> GIVE(MSG, sent); sent++ }
#else
	:: atomic { MAY_SEND && credit -> credit--; GIVE(MSG, sent); sent++ }
#ifndef NO_ANNOUNCE
	:: atomic { MAY_SEND && !credit -> rts = rts | (1 << sent); rts_cnt++; GIVE(XRTS, sent); sent++ }
#endif
#endif
#ifdef REPLAY
	:: atomic { IS(E_ASK) && e[0] == sends -> sends++; next() }
	:: atomic { IS(E_POST) -> n = e[0]; post(); n = 0; next() }
	:: atomic { IS(E_DONE) && (received[me] & ~told & (1 << e[0])) -> told = told | (1 << e[0]); next() }
	:: atomic { IS(E_GONE) && (gone & (1 << e[0])) -> gone = gone & ~(1 << e[0]); next() }
	:: atomic { IS(E_STATE) && e[0] == credit && e[1] == rts_cnt && e[2] == kept_cnt &&
		    e[3] == announced_cnt + asked_cnt && e[4] == asked_cnt && e[5] == owed -> next() }
#else
	:: atomic { done < MESSAGES && !posted && !asked ->
		n = wanted;
		if
		:: backwards && wanted -> wanted--
		:: !backwards && wanted < MESSAGES - 1 -> wanted++
		:: else
		fi;
		post();
		n = 0 }
#endif
	:: atomic { owed && 2 * owed >= CREDIT_MAX -> GIVE(CREDIT, owed); owed = 0 }	/* tx_add_credit() */
	:: atomic { MAY_WRITE && nfull(stream[1 - me]) ->
		queue[me]?frame,n;
		stream[1 - me]!frame,n;
#ifdef REPLAY
		if
		:: frame == MSG || frame == XDATA -> gone = gone | (1 << n)
		:: else
		fi;
		next();
#endif
		n = 0 }
	:: atomic { MAY_READ ->
		stream[me]?frame,n;
		handle();
		n = 0;
#ifdef REPLAY
		next()
#endif
	   }
	od
}

init {
	atomic {
#ifdef REPLAY
		choose_log();
		ev == E_LIMIT;
		limit = e[0];
		next();
#endif
		run peer(0);
		run peer(1)
	};
#ifndef REPLAY
	timeout -> assert(received[0] == (1 << MESSAGES) - 1 && received[1] == (1 << MESSAGES) - 1)
#endif
}
