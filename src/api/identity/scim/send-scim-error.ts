import type { FastifyReply, FastifyRequest } from 'fastify';
import { sendError } from '../../platform/http/errors.ts';
import { errorSchema } from './scim.schemas.ts';
import { ScimError } from './scim-error.ts';

/** Errors of SCIM calls have their own format (RFC 7644, section 3.12). */
export function sendScimError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendError(thrown, request, reply, ({ message, status }) => ({
    type: 'application/scim+json; charset=utf-8',
    body: {
      schemas: [errorSchema],
      status: String(status),
      ...(scimTypeOf(thrown, status) ?? {}),
      detail: message,
    },
  }));
}

function scimTypeOf(thrown: unknown, status: number): { readonly scimType: string } | null {
  if (thrown instanceof ScimError) return { scimType: thrown.scimType };
  return status === 400 ? { scimType: 'invalidSyntax' } : null;
}
