import { Type } from 'typebox';
import type { Config } from '../../shared/platform/config/config.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { archiveTooLarge, maxArchiveBytes } from '../../shared/policies/policy-archives.ts';
import { bodyEncoding, checkedBody, declaredBytes } from '../platform/http/request-body.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import type { AddressQuery } from './archive-urls.ts';
import { ArchiveParams, ArchiveQuery } from './policies.schemas.ts';
import type { PolicyPackService } from './policy-pack-service.ts';

export interface Services {
  readonly config: Config;
  readonly policyPacks: PolicyPackService;
}

const path = '/policy-packs/:versionId';
const tags = ['policies'];
const archiveType = 'application/gzip';
const archive = Type.String({ description: 'The archive (.tgz)' });

/** These routes are outside the protocol: the CLI sends neither a token nor a version, only the signed address that it was given. */
export function registerPolicyArchiveRoutes(app: RouteScope, services: Services): void {
  uploadArchive(app, services);
  downloadArchive(app, services);
}

function uploadArchive(app: RouteScope, { config, policyPacks }: Services): void {
  app.put(
    path,
    {
      config: {
        rate: 'held',
        audit: { none: 'the version was begun, and will be published, by calls that are recorded' },
        body: 'payload',
        described: { body: archive, errorStatuses: [400, 403, 404, 409, 413, 415] },
      },
      schema: {
        tags,
        summary: 'Upload the archive of a policy pack',
        consumes: ['application/octet-stream'],
        params: ArchiveParams,
        querystring: ArchiveQuery,
        response: { 204: Type.Null() },
      },
      // Before any byte of the body is read.
      onRequest: async (request) => {
        await policyPacks.admitUpload(idOf(request.params), request.query as AddressQuery);
      },
    },
    async (request, reply) => {
      if (bodyEncoding(request) !== 'identity')
        throw new InvalidRequestError('Send the archive without Content-Encoding');
      if ((declaredBytes(request) ?? 0) > maxArchiveBytes) throw archiveTooLarge();
      const body = checkedBody(request.raw, config.limits.minBodyBytesPerSecond);
      await policyPacks.receive(idOf(request.params), body, clientGone(reply));
      return reply.code(204).send(null);
    },
  );
}

function downloadArchive(app: RouteScope, { policyPacks }: Services): void {
  app.get(
    path,
    {
      config: {
        rate: 'held',
        described: { responses: { 200: archive }, produces: [archiveType], errorStatuses: [400, 403, 404] },
      },
      schema: {
        tags,
        summary: 'Download the archive of a policy pack',
        params: ArchiveParams,
        querystring: ArchiveQuery,
      },
      onRequest: async (request) => {
        await policyPacks.admitDownload(idOf(request.params), request.query as AddressQuery);
      },
    },
    async (request, reply) => {
      const { sizeBytes, bytes } = await policyPacks.open(idOf(request.params), request.query, clientGone(reply));
      // The length exposes a truncated response.
      return sendChunks(reply.header('content-length', sizeBytes), bytes, { contentType: archiveType });
    },
  );
}

/** An id that was never issued is like an invalid address: its signature does not match. */
function idOf(params: unknown): string {
  const { versionId } = params as { versionId: string };
  return isUuid(versionId) ? versionId : '';
}
