import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { throughOutage } from '../../shared/platform/db/through-outage.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { parseTags } from '../../shared/stacks/tags.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { apiToken, stackPath, updateKinds } from '../platform/http/paths.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ContractCreateUpdateRequest, ContractCreateUpdateResponse } from '../platform/protocol/contract.ts';
import { StackParams } from '../platform/protocol/core.ts';
import { clientGone, whenUndelivered } from '../platform/server/client-gone.ts';
import type { RequiredPolicy } from '../policies/policies.schemas.ts';
import type { PolicyPackService } from '../policies/policy-pack-service.ts';
import type { NewUpdateRequest } from './new-update-request.ts';
import type { WaitingCreations } from './queue/waiting-creations.ts';
import type { UpdateRuleService } from './rules/update-rule-service.ts';
import type { UpdateService } from './update-service.ts';
import { beginResponse, createUpdateResponse, warn } from './updates.mappers.ts';
import {
  BeginUpdateRequest,
  BeginUpdateResponse,
  CreateUpdateRequest,
  CreateUpdateResponse,
  QueueQuery,
} from './updates.schemas.ts';

export interface Services {
  readonly policyPacks: PolicyPackService;
  readonly waitingCreations: WaitingCreations;
  readonly updateRules: UpdateRuleService;
  readonly updates: UpdateService;
}

/** The time for which calls wait beyond their hold during an outage. */
const outageMs = 5_000;

const tags = ['updates'];
const config = {
  /** The services ask for `write` unless the update is a preview. */
  access: { kind: 'stack', permission: 'preview' },
  rate: 'held',
  audit: 'update.create',
  goesFirst: true,
} as const;
const description =
  'While another update holds the stack, the call may wait for it. A response 307 asks the client to repeat the call at the given URL, which keeps its position in the queue.';

export function registerCreationRoutes(app: RouteScope, services: Services): void {
  createUpdate(app, services);
  beginUpdate(app, services);
}

function createUpdate(app: RouteScope, services: Services): void {
  for (const kind of updateKinds) {
    app.post(
      `${stackPath}/${kind}`,
      {
        config: { ...config, contractBody: ContractCreateUpdateRequest, described: { errorStatuses: [409] } },
        schema: {
          ...{ tags, description },
          summary: `Create an update of kind ${kind}`,
          security: apiToken,
          params: StackParams,
          querystring: QueueQuery,
          body: CreateUpdateRequest,
          response: { 200: Type.Union([CreateUpdateResponse, ContractCreateUpdateResponse]), 307: Type.Null() },
        },
      },
      async ({ params, query, body, caller, dialect, audit }, reply) => {
        const call = { params, query, caller, dialect, audit, gone: clientGone(reply) };
        const created = await create(services, call, takeNewUpdate(kind, body), reply);
        if (!created) return null;
        whenUndelivered(
          reply,
          () => void services.updates.withdrawUnanswered(created.updateId, null, 'client-gone', audit),
        );
        return createUpdateResponse(dialect, created.updateId, created);
      },
    );
  }
}

function beginUpdate(app: RouteScope, services: Services): void {
  app.post(
    `${stackPath}/begin-update`,
    {
      config: { ...config, described: { errorStatuses: [409] } },
      schema: {
        ...{ tags, description },
        summary: 'Create and start an update',
        security: apiToken,
        params: StackParams,
        querystring: QueueQuery,
        body: BeginUpdateRequest,
        response: { 200: BeginUpdateResponse, 307: Type.Null() },
      },
    },
    async ({ params, query, body, caller, audit }, reply) => {
      const dialect = 'pulumi';
      const kind = body.updateKind === 'resource-import' ? 'update' : body.updateKind;
      const gone = clientGone(reply);
      const call = { params, query, caller, dialect, audit, gone } as const;
      const { tags = null, journalVersion } = body;
      // Checked before the call waits, because only valid tags are small.
      const request = {
        tags: tags && parseTags(tags),
        journalVersion: journalVersion ?? 0,
      };
      Reflect.deleteProperty(body, 'tags');
      const created = await create(services, call, takeNewUpdate(kind, body.program), reply);
      if (!created) return null;
      const { updateId } = created;
      audit.attempt('update.start');
      const started = await services.updates.startNew(params, updateId, caller, { ...request, gone }, audit);
      whenUndelivered(reply, () => void services.updates.withdrawUnanswered(updateId, started, 'client-gone', audit));
      warn(reply, started.warnings);
      return beginResponse(created, started);
    },
  );
}

interface CreationCall {
  readonly params: StackRef;
  readonly query: QueueQuery;
  readonly caller: Caller;
  readonly dialect: Dialect;
  readonly audit: AuditTrail;
  readonly gone: AbortSignal;
}

interface Created {
  readonly updateId: string;
  readonly requiredPolicies: RequiredPolicy[];
  readonly messages: readonly string[];
}

/** Null: the client is asked to repeat the call. */
async function create(
  { policyPacks, waitingCreations, updateRules, updates }: Services,
  { params, query, caller, dialect, audit, gone }: CreationCall,
  request: NewUpdateRequest,
  reply: FastifyReply,
): Promise<Created | null> {
  const until = waitingCreations.responseTime();
  const inform = async () => ({
    requiredPolicies: dialect === 'contract' ? [] : await policyPacks.listRequired(params),
    warnings: request.kind === 'destroy' ? await updateRules.warnOfDestroy(params, caller, until) : [],
  });
  // Read before the update is created: after a later failure, a client would not know of the update.
  const informed = inform();
  const waiting = { entryId: query.entry ?? null, hop: query.hop ?? 0, gone, informed, until };
  const created = await waitingCreations.create({ ref: params, caller, dialect, request }, audit, waiting);
  if ('entryId' in created) {
    audit.settle();
    // Relative, so that it is right behind every proxy.
    void reply.code(307).header('location', `?entry=${created.entryId}&hop=${created.hop}`);
    return null;
  }
  const { hasWaited, messages, updateId } = created;
  // During a wait, policies may have changed and the addresses of their packs have expired.
  const now = !hasWaited
    ? await informed
    : await throughOutage(inform, outageMs).catch(async (error: unknown) => {
        await updates.withdrawUnanswered(updateId, null, 'not-started', audit);
        throw error;
      });
  // Nobody will start the update.
  if (hasWaited && gone.aborted) {
    await updates.withdrawUnanswered(updateId, null, 'client-gone', audit);
    throw new InvalidRequestError('The client has disconnected');
  }
  return { updateId, requiredPolicies: now.requiredPolicies, messages: [...messages, ...now.warnings] };
}

/** Empties the body, because it lives as long as the call. */
function takeNewUpdate(kind: NewUpdateRequest['kind'], body: CreateUpdateRequest): NewUpdateRequest {
  const request: NewUpdateRequest = {
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
  for (const name of Object.keys(body)) Reflect.deleteProperty(body, name);
  return request;
}
