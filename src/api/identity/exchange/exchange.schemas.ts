import { Type } from 'typebox';
import { component } from '../../platform/protocol/components.ts';

/** As a form or as JSON. */
export const ExchangeRequest = component(
  'ExchangeRequest',
  Type.Object({
    grant_type: Type.String({ description: 'urn:ietf:params:oauth:grant-type:token-exchange' }),
    audience: Type.String({ description: 'urn:pulumi:org:<organization>' }),
    subject_token: Type.String({ description: 'The id token of the CI run, a JWT' }),
    subject_token_type: Type.String({ description: 'urn:ietf:params:oauth:token-type:id_token' }),
    requested_token_type: Type.Optional(
      Type.String({ description: 'urn:pulumi:token-type:access_token:organization (default), …:team or …:personal' }),
    ),
    scope: Type.Optional(Type.String({ description: 'admin, team:<name> or user:<login>' })),
    expiration: Type.Optional(Type.String({ description: 'Seconds; shortened to what the policy allows' })),
  }),
  {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: 'urn:pulumi:org:acme',
    subject_token: 'eyJhbGciOi…',
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
  },
);

export const ExchangeResponse = component(
  'ExchangeResponse',
  Type.Object({
    access_token: Type.String(),
    issued_token_type: Type.String(),
    token_type: Type.String(),
    expires_in: Type.Integer({ description: 'Seconds' }),
    scope: Type.String(),
  }),
);
