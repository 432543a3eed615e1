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
 */
#define A	1
#define B	2
#define M	3
#define CONNECT	1
#define ACCEPT	2

/* Nonces are numbers: 1 to 5 of sessions with M, 6 and 7 of the old exchange, 8 of M, 9 and 10 of the direct one. */
#define OLD_CHALLENGE	6
#define OLD_NONCE	7
#define OWN	8

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

#ifdef NO_ROLE
#define IS_ROLE(i, r)		true
#else
#define IS_ROLE(i, r)		(known[i].role == r)
#endif
#ifdef NO_CHALLENGE
#define IS_CHALLENGE(i, c)	true
#else
#define IS_CHALLENGE(i, c)	(known[i].challenge == c)
#endif
#ifdef NO_ADDRESS
#define ARE_ENDS(i, f, t)	true
#else
#define ARE_ENDS(i, f, t)	(known[i].from == f && known[i].to == t)
#endif

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
		:: IS_ROLE(i, ACCEPT) && IS_CHALLENGE(i, challenge) && known[i].nonce == nonce && ARE_ENDS(i, me, M) ->
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
		:: IS_ROLE(i, CONNECT) && IS_CHALLENGE(i, challenge) && ARE_ENDS(i, from, me) ->
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
