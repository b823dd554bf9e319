import { Type } from 'typebox';

/** apitype.ErrorResponse: the CLI trusts `code`, not the status line (pkg/backend/httpstate/client/api.go). */
export const ErrorResponse = Type.Object({ code: Type.Integer(), message: Type.String() });
export type ErrorResponse = Type.Static<typeof ErrorResponse>;
