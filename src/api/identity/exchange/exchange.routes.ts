import { type BodyParts, receiveBody } from '../../platform/http/request-body.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { OAuthErrorResponse } from '../../platform/protocol/errors.ts';
import { ExchangeRequest, ExchangeResponse } from './exchange.schemas.ts';
import { parseExchangeRequest, typeOfToken } from './exchange-request.ts';
import type { ExchangeService } from './exchange-service.ts';

export interface Services extends BodyParts {
  readonly exchange: ExchangeService;
}

const maxBytes = 64 * 1024;
const failures = Object.fromEntries([400, 413, 415, 429, 503].map((status) => [status, OAuthErrorResponse]));

/** The request is a form without a protocol version, as `pulumi login --oidc-token` sends it. */
export function registerExchangeRoutes(app: RouteScope, services: Services): void {
  const { exchange } = services;
  app.post(
    '/api/oauth/token',
    {
      config: {
        access: { kind: 'public' },
        rate: 'held',
        anyAccept: true,
        audit: 'token.exchange',
        body: 'payload',
        errors: 'oauth',
        described: { body: ExchangeRequest, responses: { 200: ExchangeResponse, ...failures } },
      },
      schema: {
        tags: ['tokens'],
        summary: 'Exchange the id token of a CI run for a token',
        consumes: ['application/x-www-form-urlencoded', 'application/json'],
        response: { 200: ExchangeResponse },
      },
    },
    async (request) => {
      const { body, release } = await receiveBody(services, request, maxBytes);
      try {
        const parsed = () => parseExchangeRequest(body, request.headers['content-type'] ?? '');
        const { expiresInSeconds, token } = await exchange.exchange(request.raw, parsed, request.audit);
        const { kind, scope } = parsed();
        return {
          access_token: token,
          issued_token_type: typeOfToken(kind),
          token_type: 'token',
          expires_in: expiresInSeconds,
          scope,
        };
      } finally {
        release();
      }
    },
  );
}
