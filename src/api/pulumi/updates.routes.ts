import { Type } from 'typebox';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { StackParams, UpdateParams } from '../../shared/protocol/core.ts';
import {
  CompleteUpdateRequest,
  CreateUpdateRequest,
  CreateUpdateResponse,
  GetUpdateResponse,
  RenewLeaseRequest,
  RenewLeaseResponse,
  StartUpdateRequest,
  StartUpdateResponse,
} from '../../shared/protocol/updates.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../api-context.ts';
import { isUpdateId } from '../plugins/lease-access.ts';
import type { RouteScope } from '../route-scope.ts';
import { jsonString, pieceBytes, sendPieces } from '../streamed-answer.ts';
import type { NewUpdateRequest } from '../updates/update-creation.ts';
import { updateNotFound } from '../updates/update-errors.ts';
import { largeText } from '../updates/update-info.ts';
import { UpdateService } from '../updates/update-service.ts';
import { expirationAnswer, historyResult, startAnswer, unixSeconds } from './answers.ts';
import { apiToken, leaseToken, stackPath, updateKinds, updatePath } from './paths.ts';

const tags = ['updates'];
const viewer = { access: { kind: 'organization', role: 'viewer' } } as const;
const member = { access: { kind: 'organization', role: 'member' } } as const;

/** The life of an update. */
export function registerUpdateRoutes(app: RouteScope, context: ApiContext): void {
  const updates = new UpdateService(context);

  for (const kind of updateKinds) {
    app.post(
      `${stackPath}/${kind}`,
      {
        config: { ...member, described: { refusals: [409] } },
        schema: {
          tags,
          summary: `Create an update of kind ${kind}`,
          security: apiToken,
          params: StackParams,
          body: CreateUpdateRequest,
          response: { 200: CreateUpdateResponse },
        },
      },
      async ({ params, body, caller, dialect }) => {
        const updateID = await updates.create(params, caller, dialect, newUpdate(kind, body));
        return { updateID, requiredPolicies: [], messages: [] };
      },
    );
  }

  app.post(
    updatePath,
    {
      config: { ...member, described: { refusals: [409] } },
      schema: {
        tags,
        summary: 'Start an update',
        security: apiToken,
        params: UpdateParams,
        body: Type.Union([StartUpdateRequest, Type.Null()]),
        response: { 200: StartUpdateResponse },
      },
    },
    async ({ params, body, caller, dialect }) => {
      assertUpdateId(params.updateId);
      const started = await updates.start(params, params.updateId, caller, {
        tags: body?.tags ?? null,
        journalVersion: body?.journalVersion ?? 0,
      });
      return startAnswer(dialect, started);
    },
  );

  app.get(
    updatePath,
    {
      config: { ...viewer, described: { answers: { 200: GetUpdateResponse } } },
      schema: { tags, summary: 'Get an update', security: apiToken, params: UpdateParams },
    },
    async ({ params }, reply) => {
      assertUpdateId(params.updateId);
      const { history } = context;
      const update = await history.find(params.updateId, params, pieceBytes);
      if (!update) throw updateNotFound(params.updateId);
      const answer = {
        updateID: update.id,
        status: update.status,
        kind: update.kind,
        result: historyResult(update.status),
        startTime: unixSeconds(update.startedAt ?? update.createdAt),
        endTime: unixSeconds(update.endedAt),
        version: update.stackVersion ?? update.baseStackVersion,
        events: [],
        // The CLI polls until there is no token any more.
        continuationToken: isActive(update.status) ? '0' : null,
      };
      const withMessage = async function* (): AsyncGenerator<string> {
        yield `${JSON.stringify(answer).slice(0, -1)},"message":`;
        if (update.message !== null) yield JSON.stringify(update.message);
        else yield* jsonString(largeText(history, update.id, 'message'));
        yield '}';
      };
      return sendPieces(reply, withMessage());
    },
  );

  app.post(
    `${updatePath}/cancel`,
    {
      config: member,
      schema: {
        tags,
        summary: 'Cancel an update',
        security: apiToken,
        params: UpdateParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ params }, reply) => {
      assertUpdateId(params.updateId);
      await updates.cancel(params, params.updateId);
      return reply.code(204).send(null);
    },
  );

  app.post(
    `${updatePath}/renew_lease`,
    {
      config: { access: { kind: 'lease' } },
      schema: {
        tags,
        summary: 'Renew the lease',
        security: leaseToken,
        params: UpdateParams,
        body: RenewLeaseRequest,
        response: { 200: RenewLeaseResponse },
      },
    },
    async ({ headers, lease, body, dialect }) => {
      const expiresAt = await updates.renew(lease, body.duration ?? null);
      // The same token: calls in flight with it must stay valid.
      const token = (headers.authorization ?? '').replace(/^\S+\s+/, '');
      return { token, tokenExpiration: expirationAnswer(dialect, expiresAt) };
    },
  );

  app.post(
    `${updatePath}/complete`,
    {
      config: { access: { kind: 'lease', ended: true }, described: { refusals: [409] } },
      schema: {
        tags,
        summary: 'Complete an update',
        security: leaseToken,
        params: UpdateParams,
        body: CompleteUpdateRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ lease, body }, reply) => {
      await updates.complete(lease, body.status);
      return reply.code(204).send(null);
    },
  );
}

/** The request to create an update, with what it leaves out. */
export function newUpdate(kind: NewUpdateRequest['kind'], body: CreateUpdateRequest): NewUpdateRequest {
  return {
    kind,
    dryRun: body.options?.dryRun === true,
    message: body.metadata?.message ?? '',
    environment: body.metadata?.environment ?? {},
    config: body.config ?? {},
    program: {
      name: body.name ?? '',
      runtime: body.runtime ?? '',
      main: body.main ?? '',
      description: body.description ?? '',
    },
  };
}

/** Throws NotFoundError for what cannot be the id of an update. */
export function assertUpdateId(text: string): void {
  if (!isUpdateId(text))
    throw new NotFoundError(`There is no update ${JSON.stringify(text.slice(0, 60))} in this stack`);
}
