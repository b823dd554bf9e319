import { Type } from 'typebox';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { StackParams, VersionParams } from '../platform/protocol/core.ts';
import { noSuchVersion } from './no-such-version.ts';
import { LegalHoldResponse, SetLegalHoldRequest } from './retention.schemas.ts';
import type { RetentionService } from './retention-service.ts';

export interface Services {
  readonly retention: RetentionService;
}

const tags = ['retention'];
const holdPath = `${stackPath}/legal-hold`;
const pinPath = `${stackPath}/versions/:stackVersion/pin`;
const manage = { access: { kind: 'stack', permission: 'manage' }, rate: 'held' } as const;
const write = { access: { kind: 'stack', permission: 'write' }, rate: 'held' } as const;

/** Exemptions from the rules about retention. */
export function registerRetentionRoutes(app: RouteScope, services: Services): void {
  getHold(app, services);
  setHold(app, services);
  releaseHold(app, services);
  pinVersion(app, services);
  unpinVersion(app, services);
}

function getHold(app: RouteScope, { retention }: Services): void {
  app.get(
    holdPath,
    {
      config: { access: { kind: 'stack', permission: 'read' }, rate: 'held' },
      schema: {
        tags,
        summary: 'Get the legal hold of a stack',
        security: apiToken,
        params: StackParams,
        response: { 200: LegalHoldResponse },
      },
    },
    async ({ params }) => {
      const hold = await retention.findHold(params);
      return hold ? { held: true, ...hold, heldAt: hold.heldAt.toISOString() } : { held: false };
    },
  );
}

function setHold(app: RouteScope, { retention }: Services): void {
  app.put(
    holdPath,
    {
      config: { ...manage, audit: 'stack.hold' },
      schema: {
        tags,
        summary: 'Put a stack under a legal hold',
        description: 'Nothing of it is deleted, whatever rules say, also after the stack itself was deleted.',
        security: apiToken,
        params: StackParams,
        body: SetLegalHoldRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      await retention.hold(caller, params, body.reason, audit);
      return reply.code(204).send(null);
    },
  );
}

function releaseHold(app: RouteScope, { retention }: Services): void {
  app.delete(
    holdPath,
    {
      config: { ...manage, audit: 'stack.release' },
      schema: {
        tags,
        summary: 'End the legal hold of a stack',
        security: apiToken,
        params: StackParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await retention.release(caller, params, audit);
      return reply.code(204).send(null);
    },
  );
}

function pinVersion(app: RouteScope, { retention }: Services): void {
  app.put(
    pinPath,
    {
      config: { ...write, audit: 'version.pin' },
      schema: {
        tags,
        summary: 'Pin a version, so that retention keeps its state',
        security: apiToken,
        params: VersionParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params: { stackVersion, ...ref } }, reply) => {
      await retention.pin(caller, ref, readVersion(stackVersion), true, audit);
      return reply.code(204).send(null);
    },
  );
}

function unpinVersion(app: RouteScope, { retention }: Services): void {
  app.delete(
    pinPath,
    {
      config: { ...write, audit: 'version.unpin' },
      schema: {
        tags,
        summary: 'Unpin a version',
        security: apiToken,
        params: VersionParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params: { stackVersion, ...ref } }, reply) => {
      await retention.pin(caller, ref, readVersion(stackVersion), false, audit);
      return reply.code(204).send(null);
    },
  );
}

function readVersion(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw noSuchVersion(JSON.stringify(text.slice(0, 20)));
  return Number(text);
}
