import { Type } from 'typebox';

/** apitype.ErrorResponse: the CLI trusts `code`, not the status line (pkg/backend/httpstate/client/api.go). */
export const ErrorResponse = Type.Object({ code: Type.Integer(), message: Type.String() });
export type ErrorResponse = Type.Static<typeof ErrorResponse>;

export const OAuthErrorResponse = Type.Object(
  { error: Type.String(), error_description: Type.String() },
  { description: 'RFC 6749, 5.2' },
);
export type OAuthErrorResponse = Type.Static<typeof OAuthErrorResponse>;

export const ScimErrorResponse = Type.Object({
  schemas: Type.Array(Type.String()),
  status: Type.String(),
  scimType: Type.Optional(Type.String()),
  detail: Type.String(),
});
