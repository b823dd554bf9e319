import { Type } from 'typebox';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { warningHeader } from '../../shared/state/journal/journal-fault.ts';
import { apiToken, leaseToken, updatePath } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import {
  ContractGetUpdateResponse,
  ContractRenewLeaseRequest,
  ContractRenewLeaseResponse,
  ContractStartUpdateResponse,
} from '../platform/protocol/contract.ts';
import { UpdateParams } from '../platform/protocol/core.ts';
import { whenUndelivered } from '../platform/server/client-gone.ts';
import type { HistoryService } from './history-service.ts';
import type { UpdateService } from './update-service.ts';
import { leaseResponse, startResponse, updateResponse, warn } from './updates.mappers.ts';
import {
  CompleteUpdateRequest,
  GetUpdateResponse,
  RenewLeaseRequest,
  RenewLeaseResponse,
  StartUpdateRequest,
  StartUpdateResponse,
} from './updates.schemas.ts';

export interface Services {
  readonly history: HistoryService;
  readonly updates: UpdateService;
}

const tags = ['updates'];
const read = { access: { kind: 'stack', permission: 'read' }, rate: 'held' } as const;
/** The services ask for `write` unless the update is a preview that does not lock its stack. */
const preview = { access: { kind: 'stack', permission: 'preview' } } as const;

export function registerUpdateRoutes(app: RouteScope, services: Services): void {
  startUpdate(app, services);
  getUpdate(app, services);
  cancelUpdate(app, services);
  renewLease(app, services);
  completeUpdate(app, services);
}

function startUpdate(app: RouteScope, { updates }: Services): void {
  app.post(
    updatePath,
    {
      config: {
        ...preview,
        rate: 'never',
        audit: 'update.start',
        whileReadOnly: 'the update was created before',
        goesFirst: true,
        described: { errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Start an update',
        security: apiToken,
        params: UpdateParams,
        body: Type.Union([StartUpdateRequest, Type.Null()]),
        response: { 200: Type.Union([StartUpdateResponse, ContractStartUpdateResponse]) },
      },
    },
    async ({ params, body, caller, dialect, audit }, reply) => {
      assertUpdateId(params.updateId);
      const request = { tags: body?.tags ?? null, journalVersion: body?.journalVersion ?? 0 };
      const started = await updates.start(params, params.updateId, caller, request, audit);
      whenUndelivered(reply, () => void updates.withdrawUnanswered(params.updateId, started, 'client-gone', audit));
      warn(reply, started.warnings);
      return startResponse(dialect, started);
    },
  );
}

function getUpdate(app: RouteScope, { history }: Services): void {
  app.get(
    updatePath,
    {
      config: {
        ...read,
        described: { responses: { 200: Type.Union([GetUpdateResponse, ContractGetUpdateResponse]) } },
      },
      schema: { tags, summary: 'Get an update', security: apiToken, params: UpdateParams },
    },
    async ({ params, dialect }, reply) => {
      assertUpdateId(params.updateId);
      const update = await history.getUpdate(params.updateId, params);
      const response = updateResponse(dialect, update);
      const withMessage = async function* (): AsyncGenerator<string> {
        yield `${JSON.stringify(response).slice(0, -1)},"message":`;
        yield* history.messageJson(update);
        yield '}';
      };
      return sendChunks(reply, withMessage());
    },
  );
}

function cancelUpdate(app: RouteScope, { updates }: Services): void {
  app.post(
    `${updatePath}/cancel`,
    {
      config: {
        ...preview,
        rate: 'never',
        audit: 'update.cancel',
        whileReadOnly: 'running updates end sooner',
        goesFirst: true,
      },
      schema: {
        tags,
        summary: 'Cancel an update',
        security: apiToken,
        params: UpdateParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      assertUpdateId(params.updateId);
      await updates.cancel(params, params.updateId, caller, audit);
      return reply.code(204).send(null);
    },
  );
}

function renewLease(app: RouteScope, { updates }: Services): void {
  app.post(
    `${updatePath}/renew_lease`,
    {
      config: {
        access: { kind: 'lease' },
        rate: 'never',
        audit: { none: 'only lengthens what update.start records' },
        goesFirst: true,
        contractBody: ContractRenewLeaseRequest,
      },
      schema: {
        tags,
        summary: 'Renew the lease',
        security: leaseToken,
        params: UpdateParams,
        body: RenewLeaseRequest,
        response: { 200: Type.Union([RenewLeaseResponse, ContractRenewLeaseResponse]) },
      },
    },
    async ({ headers, lease, body, dialect }) => {
      const expiresAt = await updates.renew(lease, body.duration ?? null);
      // The token stays the same, so that calls in flight remain valid.
      const token = (headers.authorization ?? '').replace(/^\S+\s+/, '');
      return leaseResponse(dialect, token, expiresAt);
    },
  );
}

function completeUpdate(app: RouteScope, { updates }: Services): void {
  app.post(
    `${updatePath}/complete`,
    {
      config: {
        access: { kind: 'lease', ended: true, fenced: true },
        rate: 'never',
        audit: 'update.end',
        goesFirst: true,
        described: { errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Complete an update',
        security: leaseToken,
        params: UpdateParams,
        body: CompleteUpdateRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ lease, body, params: { organization }, audit }, reply) => {
      const { missingEntries } = await updates.complete(lease, { organization, status: body.status }, audit);
      if (missingEntries !== null)
        void reply.header(
          warningHeader,
          `The state may be incomplete: journal entries ${missingEntries} are missing. Run pulumi state repair, then pulumi refresh`,
        );
      return reply.code(204).send(null);
    },
  );
}

export function assertUpdateId(text: string): void {
  if (!isUuid(text)) throw new NotFoundError(`There is no update ${JSON.stringify(text.slice(0, 60))} in this stack`);
}
