import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { pageHeaders } from '../../platform/pages/page.ts';

export const pageTags = ['pages'];
export const sessionCookie = [{ sessionCookie: [] }];

/** For the OpenAPI document. */
export const describedPage = { responses: { 200: Type.String() }, produces: ['text/html'] };

/** For the OpenAPI document: a form that leads to another page. */
export const describedForm = { responses: { 303: Type.Null() }, errorStatuses: [403, 415] };

/** `formTarget`: another target to which the answer to the page's form may lead. */
export function sendPage(
  reply: FastifyReply,
  page: string,
  { formTarget = null, status = 200 }: { readonly formTarget?: string | null; readonly status?: number } = {},
): FastifyReply {
  return reply.code(status).headers(pageHeaders(formTarget)).type('text/html; charset=utf-8').send(page);
}
