/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A provider that exists in tests only: what it offers, and a core that writes down what it hears from it.
 */
#ifndef TEST_COMMON_OFFER_H
#define TEST_COMMON_OFFER_H

#include "common/hints/hints.h"

#define OFFER_CAPS									\
	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |	\
	 FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV | FI_RMA_EVENT |		\
	 FI_LOCAL_COMM | FI_REMOTE_COMM)

/* What the core heard: attributes in order, separated by blanks; the last texts. */
struct heard {
	bool wanted;
	unsigned cnt;
	char attrs[1024];
	char entry[256], asked[256], offered[256];
};
extern struct heard heard;
void hear_nothing(bool wanted);

extern struct fi_provider test_prov;

/* An RDM entry over IPv4 on eth0, with most things that can be had, and an IPv6 one. Freed by offers_free(). */
struct offers {
	struct fi_info *info[2];
	struct fab_offer offer[2];
};
void offers_make(struct offers *offers);
void offers_free(struct offers *offers);

#define API FI_VERSION(2, 6)		/* what most callers want */

/* What becomes of hints. */
enum { REFUSED, MATCHES };

/* Ask both offers, made anew. The list, or NULL for -FI_ENODATA. */
struct fi_info *offers_ask(uint32_t version, const struct fi_info *hints);
/* Each answer as hints gives itself, and nothing else. */
void offers_assert_stable(uint32_t version, const struct fi_info *info);

#endif
