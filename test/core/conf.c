/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See conf.h. */
#include "base/unit.h"

#include "core/conf.h"
#include "param.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char conf_path[] = "/tmp/test-conf-XXXXXX";

int conf_set_up(void **state)
{
	int fd = mkstemp(conf_path);

	(void) state;
	if (fd < 0)
		return -1;
	close(fd);
	fab_param_path = conf_path;
	return 0;
}

int conf_tear_down(void **state)
{
	(void) state;
	return unlink(conf_path);
}

void conf_write(const char *text, size_t len)
{
	FILE *file = fopen(conf_path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	fclose(file);
}
