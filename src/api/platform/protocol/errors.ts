import { Type } from 'typebox';
import { component } from './components.ts';

/** apitype.ErrorResponse: the CLI trusts `code`, not the status line (pkg/backend/httpstate/client/api.go). */
export const ErrorResponse = component('ErrorResponse', Type.Object({ code: Type.Integer(), message: Type.String() }), {
  code: 404,
  message: 'Stack acme/website/production not found',
});
export type ErrorResponse = Type.Static<typeof ErrorResponse>;

export const OAuthErrorResponse = component(
  'OAuthErrorResponse',
  Type.Object({ error: Type.String(), error_description: Type.String() }, { description: 'RFC 6749, 5.2' }),
  { error: 'invalid_grant', error_description: 'The id token has expired' },
);
export type OAuthErrorResponse = Type.Static<typeof OAuthErrorResponse>;

export const ScimErrorResponse = component(
  'ScimErrorResponse',
  Type.Object({
    schemas: Type.Array(Type.String()),
    status: Type.String(),
    scimType: Type.Optional(Type.String()),
    detail: Type.String(),
  }),
  { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: '404', detail: 'Not found' },
);
