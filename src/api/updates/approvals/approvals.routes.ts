import { Type } from 'typebox';
import { apiToken, stackPath, updatePath } from '../../platform/http/paths.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { StackParams, UpdateParams } from '../../platform/protocol/core.ts';
import type { DrainService } from '../drain-service.ts';
import { assertUpdateId } from '../updates.routes.ts';
import type { ApprovalRow, ApprovalService } from './approval-service.ts';
import {
  ApprovalParams,
  ApprovalResponse,
  AskApprovalRequest,
  DrainUpdateRequest,
  GiveApprovalRequest,
  ListApprovalsResponse,
} from './approvals.schemas.ts';

export interface Services {
  readonly approvals: ApprovalService;
  readonly changeLimits: DrainService;
}

const tags = ['guards'];

export function registerApprovalRoutes(app: RouteScope, services: Services): void {
  drainUpdate(app, services);
  listApprovals(app, services);
  askApproval(app, services);
  giveApproval(app, services);
  withdrawApproval(app, services);
}

function drainUpdate(app: RouteScope, { changeLimits }: Services): void {
  app.post(
    `${updatePath}/drain`,
    {
      config: {
        access: { kind: 'stack', permission: 'write' },
        rate: 'never',
        audit: 'update.drain',
        whileReadOnly: 'running updates end sooner',
        goesFirst: true,
        described: { errorStatuses: [409] },
      },
      schema: {
        tags,
        summary: 'Drain an update',
        description:
          'The update starts no new steps. The steps in progress are finished and saved; then its client ends it.',
        security: apiToken,
        params: UpdateParams,
        body: Type.Union([DrainUpdateRequest, Type.Null()]),
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, body, caller, params }, reply) => {
      assertUpdateId(params.updateId);
      await changeLimits.drain(params, params.updateId, caller, body?.reason ?? '', audit);
      return reply.code(204).send(null);
    },
  );
}

function listApprovals(app: RouteScope, { approvals }: Services): void {
  app.get(
    `${stackPath}/approvals`,
    {
      config: { access: { kind: 'stack', permission: 'read' }, rate: 'held' },
      schema: {
        tags,
        summary: 'List the approvals of a stack',
        description: 'The 100 most recently requested, including pending ones.',
        security: apiToken,
        params: StackParams,
        querystring: Type.Object({ commit: Type.Optional(Type.String({ description: 'Only of this commit' })) }),
        response: { 200: ListApprovalsResponse },
      },
    },
    async ({ params, query }) => ({ approvals: (await approvals.list(params, query)).map(toResponse) }),
  );
}

function askApproval(app: RouteScope, { approvals }: Services): void {
  app.post(
    `${stackPath}/approvals`,
    {
      config: { access: { kind: 'stack', permission: 'write' }, rate: 'held', audit: 'approval.ask' },
      schema: {
        tags,
        summary: 'Request the approval of a commit',
        description: 'An update that a rule stops requests it automatically.',
        security: apiToken,
        params: StackParams,
        body: AskApprovalRequest,
        response: { 200: ApprovalResponse },
      },
    },
    async ({ audit, body, caller, params }) => {
      const asked = { commit: body.commit, kind: body.kind ?? 'update', reason: body.reason ?? '' };
      return toResponse(await approvals.ask(params, caller, asked, audit));
    },
  );
}

function giveApproval(app: RouteScope, { approvals }: Services): void {
  app.post(
    `${stackPath}/approvals/:approvalId`,
    {
      config: { access: { kind: 'stack', permission: 'admin' }, rate: 'held', audit: 'approval.give' },
      schema: {
        tags,
        summary: 'Approve a commit',
        description:
          'Runs of the commit may exceed change limits and protected types for a limited time. Neither the requester nor the token of a CI run can approve.',
        security: apiToken,
        params: ApprovalParams,
        body: GiveApprovalRequest,
        response: { 200: ApprovalResponse },
      },
    },
    async ({ audit, body, caller, params }) => {
      const given = { reason: body.reason, minutes: body.minutes ?? undefined };
      return toResponse(await approvals.give(params, params.approvalId, caller, given, audit));
    },
  );
}

function withdrawApproval(app: RouteScope, { approvals }: Services): void {
  app.delete(
    `${stackPath}/approvals/:approvalId`,
    {
      config: { access: { kind: 'stack', permission: 'write' }, rate: 'held', audit: 'approval.withdraw' },
      schema: {
        tags,
        summary: 'Withdraw an approval, or the request for it',
        description:
          'For the requester, and for users with the permission admin on the stack. Running updates keep their limits.',
        security: apiToken,
        params: ApprovalParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, params }, reply) => {
      await approvals.withdraw(params, params.approvalId, caller, audit);
      return reply.code(204).send(null);
    },
  );
}

function toResponse(row: ApprovalRow) {
  const { approvedAt, approvedBy, askedAt, askedBy, commit, expiresAt, id, isValid, kind, reason, request, updateId } =
    row;
  return {
    ...{ id, kind, commit, askedAt: askedAt.toISOString(), askedBy, request, valid: isValid },
    ...(updateId === null ? {} : { updateID: updateId }),
    ...(approvedAt === null ? {} : { approvedAt: approvedAt.toISOString() }),
    ...(approvedBy === null ? {} : { approvedBy }),
    ...(reason === null ? {} : { reason }),
    ...(expiresAt === null ? {} : { expiresAt: expiresAt.toISOString() }),
  };
}
