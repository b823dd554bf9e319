import { type PermissionSet, permits } from '../../../shared/access/permissions.ts';
import { rolePermissions } from '../../../shared/access/roles.ts';
import { getListedOrganization } from '../../access/organizations.ts';
import { readsByGrants } from '../../access/reads-by-grants.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import { httpUrl } from '../../platform/http/http-url.ts';
import type { Caller } from '../../platform/http/request.ts';
import { type ApprovalOverviewRow, createApprovalQueryRepository } from './approval-query-repository.ts';
import { mayWithdraw, refusalOf } from './approval-service.ts';

/** The time of the request, in microseconds since the epoch, and the id of the approval. */
export interface ApprovalPosition {
  readonly askedMicros: string;
  readonly id: string;
}

export interface ApprovalQuery {
  readonly organization: string;
  /** Null: all stacks that the caller may read. */
  readonly project: string | null;
  readonly stack: string | null;
  /** True: only given approvals; false: only pending ones; null: both. */
  readonly isGiven: boolean | null;
  readonly commit?: string | undefined;
  /** Only approvals of stacks on which the caller has these permissions. */
  readonly held?: PermissionSet;
  /** Maximum number of approvals to examine; without it, all. */
  readonly maxScanned?: number;
  readonly before: ApprovalPosition | null;
  readonly limit: number;
}

export class ApprovalQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** The most recently requested approvals first, with the position of the last one if there are more. */
  async list(caller: Caller, { organization, ...query }: ApprovalQuery) {
    const listed = await getListedOrganization(this.#db, caller.tokenId, organization);
    const { limit } = query;
    const rows = await createApprovalQueryRepository(readsByGrants(this.#db, [listed])).list(
      listed,
      { ...query, limit: limit + 1 },
      caller,
    );
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const next: ApprovalPosition | null =
      last && rows.length > limit ? { askedMicros: last.askedMicros, id: last.id } : null;
    return { items: page.map((row) => approvalView(row, caller)), next };
  }
}

function approvalView(row: ApprovalOverviewRow, caller: Caller) {
  const held: PermissionSet = row.held ?? (caller.role === null ? 0 : rolePermissions[caller.role]);
  return {
    ...{ id: row.id, project: row.project, stack: row.stack, kind: row.kind, commit: row.commit },
    ...{ askedBy: row.askedBy, request: row.request, updateId: row.updateId, message: row.message },
    askedAt: row.askedAt.toISOString(),
    ciUrl: httpUrl(row.ciUrl),
    approvedAt: row.approvedAt?.toISOString() ?? null,
    approvedBy: row.approvedBy,
    reason: row.reason,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    /** Whether the approval is in force now. */
    isValid: row.isValid,
    mayGive: permits(held, 'admin') && refusalOf(caller, row) === null,
    mayWithdraw: mayWithdraw(caller, held, row),
    /** Why the caller may not give the approval; null also if they lack the permission. */
    refusal: permits(held, 'admin') ? refusalOf(caller, row) : null,
  };
}
