/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parking and resuming (prov/tcp/peer/park.c, request.c, dial.c; doc/decisions/tcp-parking.md): two peers, three messages
 * each way, streams that either end asks to park, once each, and that are opened again when there is something to
 * send. A stream is two channels; the end of a direction is END. A new stream has channels of its own.
 *
 * The requests for a new stream meet as in request_decide(): while the end of the old stream is unread, a request is
 * refused and comes again; of two simultaneous ones that of the larger address wins. Who accepts the other's request
 * gives up its own, which the other end drops or refuses when it comes to it: that such a request is not read before the
 * new stream is parked, and its own end neither, is assumed.
 *
 * Claims: every message arrives, once and in order; nothing is left in a stream that is closed.
 * NO_SINCE (the asking end closes although it has sent something since), NO_HOLD (the answering end sends while it is
 * PARKING), NO_REFUSAL (an end that has asked agrees to the other's PARK) each break one.
 *
 * With -DREPLAY (replay.pml) it follows logs of the code, which begin without a stream.
 */
#include "replay.pml"

#ifdef REPLAY
#define MESSAGES	16
#define PARKS		100
#define STREAMS		14
#define STREAM_LEN	24
#define TRIES		250
#define MAY_SEND	(sent < sends)
#else
#define MESSAGES	3
#define PARKS		1
#define STREAMS		3
#define STREAM_LEN	8
#define TRIES		3
#define MAY_SEND	(sent < MESSAGES)
#endif

/* Frames: numbers of enum tcp_wire_op, and of messages of the handshake + 128. */
#define MSG		1	/* TCP_WIRE_TAG */
#define PARK		48
#define PARK_YES	49
#define PARK_NO		50
#define PARK_STAY	51
#define CONNREQ		128
#define CONNRESP	129
#define NACK		134
#define END		255	/* the stream is closed */

/* enum tcp_conn_state */
#define IDLE		0
#define UP		1
#define PARKING		2

chan stream[2 * STREAMS] = [STREAM_LEN] of { byte, byte };	/* two for each stream, by the reader */
chan hello[2] = [6] of { byte, byte };		/* messages of the handshake, by the reader, and their request's number */
byte now[2];			/* the stream of this end */
byte agreed[2];			/* the stream that the last request of this peer has made */
byte state[2];
byte streams;
byte request[2];		/* the number of this peer's request that waits for an answer; 0: none */
byte got[2];

#ifdef REPLAY
/* What the code has given to the socket within a call is seen when the socket has taken it. */
chan queue[2] = [24] of { byte, byte, byte };
#define WRITE(frame, n)	queue[me]!now[me],frame,n
#else
#define WRITE(frame, n)	stream[2 * now[me] + 1 - me]!frame,n
#endif
#define IN		stream[2 * now[me] + me]

/* tcp_conn_wake(): a frame, or a part of one, has come. */
inline wake()
{
	if
	:: state[me] == PARKING -> state[me] = UP
	:: else
	fi
}

inline handle()
{
	if
	:: frame != END -> wake()
	:: else
	fi;
	if
	:: frame == MSG ->
		assert(n == got[me]);
		got[me]++
	:: frame == PARK ->		/* tcp_park_asked() */
		if
#ifndef NO_REFUSAL
		:: asked -> WRITE(PARK_NO, 0); since = 1
#else
		:: asked -> WRITE(PARK_YES, 0); state[me] = PARKING
#endif
		:: !asked -> WRITE(PARK_NO, 0); since = 1	/* busy */
		:: !asked -> WRITE(PARK_YES, 0); state[me] = PARKING
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
			WRITE(END, 0);
			assert(empty(IN));	/* the peer has sent nothing that nobody reads */
			state[me] = IDLE
		:: !since -> WRITE(PARK_STAY, 0)	/* a frame was cancelled: busy again */
		fi
	:: frame == PARK_NO ->
		assert(asked);
		asked = 0
	:: frame == PARK_STAY
	:: frame == END ->		/* tcp_rx_end() */
		assert(state[me] == PARKING);
		state[me] = IDLE
	fi
}

/* The other end's request is answered: request_decide(). */
inline decide()
{
	if
	:: theirs != request[1 - me]			/* it was given up: tcp_request_is_dead() */
	:: theirs != request[1 - me] -> hello[1 - me]!NACK,theirs
	:: theirs == request[1 - me] && state[me] == IDLE && (!dialing || me < 1 - me) ->
		dialing = 0;
		request[me] = 0;
		assert(state[1 - me] == IDLE && streams < STREAMS);
		now[me] = streams;
		agreed[1 - me] = streams;
		streams++;
		state[me] = UP;
		hello[1 - me]!CONNRESP,theirs
	:: theirs == request[1 - me] && (state[me] == PARKING || (state[me] == IDLE && dialing && me > 1 - me)) ->
		hello[1 - me]!NACK,theirs		/* it comes again, or ours wins */
	:: theirs == request[1 - me] && state[me] == UP -> assert(false)
	fi;
	theirs = 0
}

proctype peer(bit me)
{
	byte sent = 0, parks = 0, n, frame;
	byte theirs = 0;		/* the other end's request that is to be answered */
	byte tries = 0;
	bit dialing = 0;		/* this end makes a request */
	bit asked = 0, since = 0;
#ifdef REPLAY
	byte sends = 0;
#endif

end:	do
#ifdef NO_HOLD
	:: atomic { MAY_SEND && state[me] != IDLE ->
#else
	:: atomic { MAY_SEND && state[me] == UP ->
#endif
		WRITE(MSG, sent); sent++; since = 1 }
	:: atomic { MAY_SEND && state[me] == IDLE && !dialing -> dialing = 1 }
#ifdef REPLAY
	:: atomic { IS(E_PART) && e[0] == now[me] && state[me] != IDLE && (nempty(IN) || nempty(queue[1 - me])) ->
		wake(); next() }
	:: atomic { IS(E_ASK) -> sends++; next() }
	:: atomic { IS(E_POST) || (IS(E_GONE) && e[0] < sent) -> next() }
	:: atomic { IS(E_DONE) && e[0] < got[me] -> next() }
	:: atomic { IS(E_STATE) && e[0] == state[me] && e[1] == asked -> next() }
	:: atomic { IS(E_PARK) && state[me] == UP && !asked -> asked = 1; since = 0; WRITE(PARK, 0); next() }
	:: atomic { IS(E_SENT) && queue[me]?[eval(e[2]),eval(e[0]),eval(e[1])] ->
		queue[me]?_,frame,n; stream[2 * e[2] + 1 - me]!frame,n; frame = 0; n = 0; next() }
	:: atomic { IS(E_GOT) && e[0] < CONNREQ && e[2] == now[me] && state[me] != IDLE && IN?[eval(e[0]),eval(e[1])] ->
		IN?frame,n; handle(); frame = 0; n = 0; next() }
	:: atomic { IS(E_GOT) && e[0] == END && e[2] == now[me] && state[me] != IDLE && IN?[END,0] ->
		IN?frame,n; handle(); frame = 0; n = 0; next() }
	:: atomic { IS(E_SENT) && e[0] == CONNREQ && dialing && !request[me] && e[1] == tries + 1 ->
		tries++; request[me] = tries; hello[1 - me]!CONNREQ,tries; next() }
	:: atomic { IS(E_GOT) && e[0] == CONNREQ && !theirs && hello[me]??[CONNREQ,eval(e[1])] ->
		hello[me]??CONNREQ,eval(e[1]); theirs = e[1]; next() }
	:: atomic { IS(E_SENT) && (e[0] == CONNRESP || e[0] == NACK) && theirs == e[1] ->
		decide();
		hello[1 - me]??[eval(e[0]),eval(e[1])];
		next() }
	:: atomic { theirs && theirs != request[1 - me] -> theirs = 0 }
	:: atomic { IS(E_GOT) && e[0] == CONNRESP && e[1] == request[me] && hello[me]??[CONNRESP,eval(e[1])] ->
		hello[me]??CONNRESP,eval(e[1]); request[me] = 0; dialing = 0; now[me] = agreed[me]; state[me] = UP;
		next() }
	:: atomic { IS(E_GOT) && e[0] == NACK && e[1] == request[me] && hello[me]??[NACK,eval(e[1])] ->
		hello[me]??NACK,eval(e[1]); request[me] = 0; dialing = 0; next() }
#else
	:: atomic { state[me] == PARKING && nempty(IN) && !IN?[END,0] -> wake() }	/* it has read a part of the frame */
	:: atomic { state[me] == UP && !asked && parks < PARKS ->
		asked = 1; since = 0; parks++; WRITE(PARK, 0) }
	:: atomic { state[me] != IDLE && nempty(IN) -> IN?frame,n; handle(); frame = 0; n = 0 }
	:: atomic { dialing && !request[me] && nfull(hello[1 - me]) ->
		tries = tries % TRIES + 1; request[me] = tries; hello[1 - me]!CONNREQ,tries }
	:: atomic { !theirs && hello[me]??[CONNREQ,_] -> hello[me]??CONNREQ,theirs }
	:: atomic { theirs && nfull(hello[1 - me]) -> decide() }
	:: atomic { hello[me]??[CONNRESP,_] -> hello[me]??CONNRESP,n;
		if
		:: n == request[me] -> request[me] = 0; dialing = 0; now[me] = agreed[me]; state[me] = UP
		:: else
		fi;
		n = 0 }
	:: atomic { hello[me]??[NACK,_] -> hello[me]??NACK,n;
		if
		:: n == request[me] -> request[me] = 0; dialing = 0
		:: else
		fi;
		n = 0 }
#endif
	od
}

init {
	atomic {
#ifdef REPLAY
		choose_log();
#else
		state[0] = UP;
		state[1] = UP;
		streams = 1;
#endif
		run peer(0);
		run peer(1)
	};
#ifndef REPLAY
	timeout -> assert(got[0] == MESSAGES && got[1] == MESSAGES)
#endif
}
