/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parking and resuming (prov/tcp/peer/park.c, request.c, dial.c; doc/decisions/tcp-parking.md): two peers, three messages
 * each way, streams that either end asks to park, once each, and that are opened again when there is something to
 * send. A stream is two channels; the end of a direction is END. A new stream has channels of its own.
 *
 * The requests for a new stream meet as in request_decide(): while the end of the old stream is unread, a request is
 * refused and comes again; of two simultaneous ones that of the larger address wins.
 *
 * Claims: every message arrives, once and in order; nothing is left in a stream that is closed.
 * NO_SINCE (the asking end closes although it has sent something since), NO_HOLD (the answering end sends while it is
 * PARKING), NO_REFUSAL (an end that has asked agrees to the other's PARK) each break one.
 */
#define MESSAGES	3
#define PARKS		1
#define STREAMS		3

mtype = { MSG, PARK, PARK_YES, PARK_NO, END };
mtype = { UP, PARKING, IDLE };

chan stream[2 * STREAMS] = [8] of { mtype, byte };	/* two for each stream, by the reader */
mtype state[2] = UP;		/* enum tcp_conn_state */
byte now[2];			/* the stream of this end */
byte streams = 1;
bit requests[2];		/* a request of this peer is on its way */
byte got[2];

#define OUT	stream[2 * now[me] + 1 - me]
#define IN	stream[2 * now[me] + me]

inline handle()
{
	if
	:: frame == MSG ->
		assert(n == got[me]);
		got[me]++;
		if
		:: state[me] == PARKING -> state[me] = UP	/* rx_goes_on(): tcp_conn_wake() */
		:: else
		fi
	:: frame == PARK ->		/* tcp_park_asked() */
		assert(state[me] == UP);
		if
#ifndef NO_REFUSAL
		:: asked -> OUT!PARK_NO,0; since = 1
#else
		:: asked -> OUT!PARK_YES,0; state[me] = PARKING
#endif
		:: !asked -> OUT!PARK_NO,0	/* busy */
		:: !asked -> OUT!PARK_YES,0; state[me] = PARKING
		fi
	:: frame == PARK_YES ->		/* tcp_park_answered() */
		assert(asked);
		asked = 0;
		if
#ifndef NO_SINCE
		:: since
		:: !since ->
#else
		:: true ->
#endif
			OUT!END,0;
			assert(empty(IN));	/* the peer has sent nothing that nobody reads */
			state[me] = IDLE
		fi
	:: frame == PARK_NO ->
		assert(asked);
		asked = 0
	:: frame == END ->		/* tcp_rx_end() */
		assert(state[me] == PARKING);
		state[me] = IDLE
	fi
}

/* The request of the other end has arrived: request_decide(). */
inline decide()
{
	if
	:: state[me] == IDLE && (!requests[me] || me < 1 - me) ->
		requests[1 - me] = 0;
		requests[me] = 0;
		assert(state[1 - me] == IDLE && streams < STREAMS);
		now[me] = streams;
		now[1 - me] = streams;
		streams++;
		state[me] = UP;
		state[1 - me] = UP
	:: state[me] == PARKING || (state[me] == IDLE && requests[me] && me > 1 - me) ->
		requests[1 - me] = 0	/* refused: it comes again, or ours wins */
	fi
}

proctype peer(bit me)
{
	byte sent = 0, parks = 0, n;
	bit asked = 0, since = 0;
	mtype frame;

end:	do
#ifdef NO_HOLD
	:: atomic { sent < MESSAGES && state[me] != IDLE ->
#else
	:: atomic { sent < MESSAGES && state[me] == UP ->
#endif
		OUT!MSG,sent; sent++; since = 1 }
	:: atomic { state[me] == UP && !asked && parks < PARKS ->
		asked = 1; since = 0; parks++; OUT!PARK,0 }
	:: atomic { state[me] != IDLE && nempty(IN) -> IN?frame,n; handle() }
	:: atomic { sent < MESSAGES && state[me] == IDLE && !requests[me] -> requests[me] = 1 }
	:: atomic { requests[1 - me] && state[me] != UP -> decide() }
	od
}

init {
	atomic { run peer(0); run peer(1) };
	timeout -> assert(got[0] == MESSAGES && got[1] == MESSAGES)
}
