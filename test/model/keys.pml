/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake with authorization keys (prov/tcp/handshake/auth.c; doc/decisions/tcp-auth.md). A and B have the key. M has
 * it not, and knows everything that was ever sent: A and B connect to M (auth_take_challenge(), auth_take_admit()), M
 * connects to both (auth_take_request(), auth_take_proof()), and, with the address that A had, to B once more. An old
 * exchange of A with B is recorded. M chooses what to deliver, and when; it can copy hashes, and not make one.
 *
 * A hash covers the role, the nonce of the challenge, the nonce of the proof, and the addresses of the connecting and the
 * accepting side.
 *
 * Claims: nobody takes M for one who has the key; A and B, who connect to each other directly, come to the end.
 * NO_ROLE, NO_CHALLENGE and NO_ADDRESS leave a part out of the hash: M is let in.
 *
 * With -DREPLAY (replay.pml) it follows logs of A and B, of the code, and of an M that sends what it knows as it likes.
 * They show whose hash each message has, and what it covers.
 */
#include "replay.pml"

#define A	1
#define B	2
#define M	3
#define CONNECT	1
#define ACCEPT	2

/* Nonces are numbers: 1 to 5 of sessions with M, 6 and 7 of the old exchange, 8 of M, 9 and 10 of the direct one. */
#define OLD_CHALLENGE	6
#define OLD_NONCE	7
#define OWN	8

/* Two rules: a hash is the proof of the one who connects from `from` to me, and the admission by `to`. */
#ifdef NO_ROLE
#define HAS_ROLE(hash, r)	true
#else
#define HAS_ROLE(hash, r)	(hash.role == r)
#endif
#ifdef NO_CHALLENGE
#define HAS_CHALLENGE(hash, c)	true
#else
#define HAS_CHALLENGE(hash, c)	(hash.challenge == c)
#endif
#ifdef NO_ADDRESS
#define HAS_ENDS(hash, f, t)	true
#else
#define HAS_ENDS(hash, f, t)	(hash.from == f && hash.to == t)
#endif
#define IS_PROOF(hash, c, f, t)		(HAS_ROLE(hash, CONNECT) && HAS_CHALLENGE(hash, c) && HAS_ENDS(hash, f, t))
#define IS_ADMISSION(hash, c, n, f, t)	(HAS_ROLE(hash, ACCEPT) && HAS_CHALLENGE(hash, c) && hash.nonce == n && \
					 HAS_ENDS(hash, f, t))

typedef mac { byte role, challenge, nonce, from, to }
#define KNOWN_MAX	12
mac known[KNOWN_MAX];
byte known_cnt = 0;
bit met[2];			/* A and B have reached each other */

inline learn(r, c, n, f, t)
{
	assert(known_cnt < KNOWN_MAX);
	known[known_cnt].role = r;
	known[known_cnt].challenge = c;
	known[known_cnt].nonce = n;
	known[known_cnt].from = f;
	known[known_cnt].to = t;
	known_cnt++
}

#ifndef REPLAY
/* One who connects to M, in the belief that somebody with the key is there. */
proctype connects(byte me, nonce)
{
	byte challenge, i;

	/* M sends one of the nonces that it knows as its challenge */
	atomic { if :: challenge = 3 :: challenge = 4 :: challenge = 5 :: challenge = OLD_CHALLENGE :: challenge = OWN fi; learn(CONNECT, challenge, nonce, me, M) };
	/* and any hash as its admission */
	atomic {
		select(i : 0 .. known_cnt - 1);
		if
		:: IS_ADMISSION(known[i], challenge, nonce, me, M) ->
			assert(false)
		:: else
		fi;
		i = 0
	}
}

/* One to whom M connects, from this address. */
proctype accepts(byte me, challenge, from)
{
	byte i;

	atomic {
		select(i : 0 .. known_cnt - 1);
		if
		:: IS_PROOF(known[i], challenge, from, me) ->
			assert(false)
		:: else
		fi;
		i = 0
	}
}

chan to_b = [1] of { byte };
chan to_a = [1] of { byte };
#define CONNREQ		0
#define CONNRESP	11

/* A connects to B directly: nobody is in between, M only listens. */
proctype direct_a()
{
	byte challenge, hash;

	to_b!CONNREQ;
	to_a?challenge;
	atomic { learn(CONNECT, challenge, 10, A, B); to_b!known_cnt - 1 };
	to_a?hash;
	assert(known[hash].role == ACCEPT && known[hash].challenge == challenge && known[hash].nonce == 10 &&
	       known[hash].from == A && known[hash].to == B);
	to_a?CONNRESP;
	met[0] = 1
}

proctype direct_b()
{
	byte hash, nonce;

	to_b?CONNREQ;
	to_a!9;
	to_b?hash;
	assert(known[hash].role == CONNECT && known[hash].challenge == 9 && known[hash].from == A && known[hash].to == B);
	nonce = known[hash].nonce;
	atomic { learn(ACCEPT, 9, nonce, A, B); to_a!known_cnt - 1 };
	to_a!CONNRESP;
	met[1] = 1
}

init {
	atomic {
		learn(CONNECT, OLD_CHALLENGE, OLD_NONCE, A, B);
		learn(ACCEPT, OLD_CHALLENGE, OLD_NONCE, A, B);
		run direct_a();
		run direct_b()
	};
	met[0] && met[1];	/* an end that is never reached is a deadlock */
	atomic {
		run connects(A, 1);
		run connects(B, 2);
		run accepts(A, 3, M);
		run accepts(B, 4, M);
		run accepts(B, 5, A)
	}
}

#else

/* Messages of the handshake + 128; anything else is a frame. */
#define M_CONNREQ	128
#define M_CONNRESP	129
#define M_NACK		134
#define M_CHALLENGE	160
#define M_PROOF		161
#define M_ADMIT		162
#define M_FRAME		0

#define SESSIONS	24
#define NONCES		120
bit used[NONCES];

/* An event of a session: e[0] the message, e[5] the session; e[1] to e[4] its hash, or e[2] its nonce. Its node is the
 * one who connects, or the other one. */
#define AT(side, what, msg)	(ev == what && e[0] == msg && e[5] == s && ev_node + 1 == side)
#define HASH()			hash.role = e[1]; hash.challenge = e[2]; hash.nonce = e[3]; \
				hash.from = e[4] / 4; hash.to = e[4] % 4

/* A connection from one node to another one, either of whom may be M. */
proctype session(byte s)
{
	byte from, to;
	byte sees, nonce;		/* connecting: the challenge, and the nonce of its proof */
	byte asks, answers;		/* accepting: its challenge, and the nonce of the proof */
	bit admitted = 0, admits = 0, up = 0;
	byte stage = 0, other = 0;	/* messages that the connecting end, and the accepting one, have had */
	mac hash;

end:	do
	:: atomic { ev == E_LIMIT && e[5] == s -> from = e[0]; to = e[1]; next() }
	/* connecting: tcp_auth_begin(), auth_take_challenge(), auth_take_admit() */
	:: atomic { AT(from, E_SENT, M_CONNREQ) && stage == 0 -> stage = 1; next() }
	:: atomic { AT(from, E_GOT, M_CHALLENGE) && stage == 1 -> sees = e[2]; stage = 2; next() }
	:: atomic { AT(from, E_SENT, M_PROOF) && stage == 2 && !used[e[3]] && e[1] == CONNECT && e[2] == sees &&
		    e[4] == 4 * from + to -> nonce = e[3]; used[nonce] = 1; stage = 3; next() }
	:: atomic { AT(from, E_GOT, M_ADMIT) && stage == 3 ->
		HASH();
		admits = IS_ADMISSION(hash, sees, nonce, from, to);
		stage = 4;
		next() }
	:: atomic { AT(from, E_GOT, M_CONNRESP) && stage == 4 && admits -> up = 1; next() }
	:: atomic { AT(from, E_GOT, M_NACK) -> stage = 9; next() }
	/* accepting: auth_take_request(), auth_take_proof() */
	:: atomic { AT(to, E_GOT, M_CONNREQ) && other == 0 -> other = 1; next() }
	:: atomic { AT(to, E_SENT, M_CHALLENGE) && other == 1 && !used[e[2]] ->
		asks = e[2]; used[asks] = 1; other = 2; next() }
	:: atomic { AT(to, E_GOT, M_PROOF) && other == 2 ->
		HASH();
		admitted = IS_PROOF(hash, asks, from, to);
		answers = hash.nonce;
		other = 3;
		next() }
	:: atomic { AT(to, E_SENT, M_ADMIT) && other == 3 && admitted && e[1] == ACCEPT && e[2] == asks &&
		    e[3] == answers && e[4] == 4 * from + to -> other = 4; next() }
	:: atomic { AT(to, E_SENT, M_CONNRESP) && other == 4 -> other = 5; next() }
	:: atomic { AT(to, E_SENT, M_NACK) && ((other == 3 && !admitted) || other == 4) -> other = 9; next() }
	/* frames: only between two who have proved their key */
	:: atomic { (AT(from, E_SENT, M_FRAME) || AT(from, E_GOT, M_FRAME)) && up -> next() }
	:: atomic { (AT(to, E_SENT, M_FRAME) || AT(to, E_GOT, M_FRAME)) && other == 5 -> next() }
	od
}

init {
	byte s;

	atomic {
		choose_log();
		for (s : 0 .. SESSIONS - 1) {
			run session(s)
		}
	}
}
#endif
