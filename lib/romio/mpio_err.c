// SPDX-License-Identifier: LGPL-2.1
/*
 * mpio_err.c - ROMIO's errors as MPI's, outside of MPICH: takes the place of
 * mpi-io/glue/default/mpio_err.c, which prints each error there is, those that the program asks for
 * too.
 *
 * An error is MPI's class, whose text MPI_Error_string() knows. (Codes of our own in one of MPI's
 * classes have no text: libmpich takes them for its own.) What it was about in detail is printed when
 * it ends the program, or, with ROMIO_PRINT_ERRORS in the environment, at once.
 */
#include "mpioimpl.h"
#include "adio_extern.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static __thread char last[1024];	/* of this thread, in detail */

int MPIO_Err_create_code(int lastcode, int fatal, const char fcname[], int line, int error_class,
			 const char generic_msg[], const char specific_msg[], ...)
{
	va_list ap;
	int n = snprintf(last, sizeof(last), "%s (line %d): ", fcname, line);

	if (specific_msg) {
		va_start(ap, specific_msg);
		vsnprintf(last + n, sizeof(last) - n, specific_msg, ap);
		va_end(ap);
	} else {
		snprintf(last + n, sizeof(last) - n, "%s", generic_msg);
	}
	if (getenv("ROMIO_PRINT_ERRORS"))
		fprintf(stderr, "%s\n", last);
	return error_class;
}

static void end(MPI_Comm comm, int code)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int len;

	MPI_Error_string(code, text, &len);
	fprintf(stderr, "%s: %s\n", last, text);
	MPI_Abort(comm, 1);
}

/* Handlers of the program's own are not known here: they end it, as MPI_ERRORS_ARE_FATAL does. */
int MPIO_Err_return_file(MPI_File mpi_fh, int error_code)
{
	MPI_Errhandler handler = mpi_fh == MPI_FILE_NULL ? ADIOI_DFLT_ERR_HANDLER :
				 MPIO_File_resolve(mpi_fh)->err_handler;

	if (handler != MPI_ERRORS_RETURN)
		end(MPI_COMM_WORLD, error_code);
	return error_code;
}

int MPIO_Err_return_comm(MPI_Comm mpi_comm, int error_code)
{
	MPI_Errhandler handler;

	MPI_Comm_get_errhandler(mpi_comm, &handler);
	if (handler != MPI_ERRORS_RETURN)
		end(mpi_comm, error_code);
	return error_code;
}
