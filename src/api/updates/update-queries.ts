import { permits } from '../../shared/access/permissions.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import { createHistoryRepository } from '../../shared/updates/history-repository.ts';
import { permissionOfUpdate } from '../../shared/updates/update-state.ts';
import { OrganizationNotVisibleError } from '../access/organizations.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import type { Caller } from '../platform/http/request.ts';
import { branchName, readConfig, safeEnvironment } from './setting-views.ts';
import { updateNotFound } from './update-not-found.ts';
import {
  createUpdateQueryRepository,
  type OverviewUpdateDetailsRow,
  type OverviewUpdateRow,
  type QueuedRunRow,
  type UpdateRange,
  type UpdateSelector,
} from './update-query-repository.ts';

export type QueueCursor = readonly [string, string, string, number];

export class UpdateQueries {
  readonly #context: Pick<ApiContext, 'db' | 'stacks'>;

  constructor(context: Pick<ApiContext, 'db' | 'stacks'>) {
    this.#context = context;
  }

  /** Newest first, with the `before` of the next page. */
  async list(ref: StackRef, query: UpdateRange) {
    const { limit } = query;
    const stackId = await this.#idOf(ref);
    const rows = await createUpdateQueryRepository(this.#context.db).list(stackId, { ...query, limit: limit + 1 });
    const page = rows.slice(0, limit);
    return { items: page.map(updateView), next: rows.length > limit ? (page.at(-1)?.number ?? null) : null };
  }

  async get(ref: StackRef, selector: UpdateSelector) {
    const { db } = this.#context;
    const rows = createUpdateQueryRepository(db);
    const stackId = await this.#idOf(ref);
    let row = await rows.find(stackId, selector);
    // Links to imported updates may contain the ids that the updates had elsewhere.
    const imported =
      row || !('id' in selector) ? null : await createHistoryRepository(db).findImported(selector.id, ref);
    if (imported !== null) row = await rows.find(stackId, { id: imported });
    if (!row) throw updateNotFound('id' in selector ? selector.id : String(selector.version));
    return detailsView(row);
  }

  /** Runs that hold or wait for a stack that the caller may read. */
  async listQueue(
    caller: Caller,
    at: { readonly organization: string; readonly project: string | null; readonly stack: string | null },
    after: QueueCursor | null,
    limit: number,
  ) {
    const { db } = this.#context;
    const start = { name: at.organization, from: null };
    const organizations = await createStackListRepository(db).listOrganizations(caller.tokenId, start);
    if (organizations.length === 0) throw new OrganizationNotVisibleError();
    const rows = await createUpdateQueryRepository(readsByGrants(db, organizations)).listQueue(
      organizations,
      at,
      after,
      limit + 1,
    );
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const next: QueueCursor | null =
      last && rows.length > limit ? [last.organization, last.project, last.stack, last.position] : null;
    return { items: page.map((row) => runView(row, caller)), next };
  }

  async #idOf(ref: StackRef): Promise<string> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return stack.id;
  }
}

const operations = ['create', 'update', 'delete', 'replace', 'same'] as const;

/** Null if unknown. */
function changeViews(json: string | null): Record<(typeof operations)[number], number> | null {
  if (json === null) return null;
  const counts = JSON.parse(json) as Record<string, unknown>;
  const of = (name: string): number => {
    const count = Object.hasOwn(counts, name) ? counts[name] : 0;
    return typeof count === 'number' && count > 0 ? Math.trunc(count) : 0;
  };
  return Object.fromEntries(operations.map((name) => [name, of(name)])) as Record<(typeof operations)[number], number>;
}

function updateView(row: OverviewUpdateRow) {
  return {
    updateId: row.id,
    version: row.version,
    kind: row.kind,
    dryRun: row.dryRun || row.kind === 'preview',
    status: row.status,
    /** Null while the update is not over. */
    result: row.endedAt === null ? null : row.status,
    endReason: row.endReason,
    /** Ids of entries that its journal lacked when it ended, as in `3-4, 7`. */
    missingEntries: row.missingEntries,
    by: row.by,
    message: row.message,
    createdAt: row.createdAt.toISOString(),
    startedAt: row.startedAt?.toISOString() ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
    changes: changeViews(row.changes),
    commit: row.commit,
    branch: branchName(row.branch),
    ciUrl: httpUrl(row.ciUrl),
  };
}

function detailsView(row: OverviewUpdateDetailsRow) {
  return {
    ...updateView(row),
    permission: permissionOfUpdate(row),
    baseVersion: row.baseVersion,
    resourceCount: row.resourceCount,
    config: readConfig(row.config),
    environment: safeEnvironment(row.environment),
    preview: row.previewId,
    /** For a preview: the update that followed it. */
    follower: row.followerId,
    /** Time in the stack's queue; null: the update did not wait, or the time is unknown. */
    waited: row.waitedMs === null ? null : { seconds: row.waitedMs / 1000, behind: heldBy(row.behind) },
  };
}

interface HeldBy {
  readonly updateId: string;
  readonly version: number | null;
  readonly kind: string;
  readonly by: string | null;
}

/** Oldest first. If there is none, a limit or a freeze deferred the update. */
function heldBy(json: string | null): readonly HeldBy[] {
  return json === null ? [] : (JSON.parse(json) as HeldBy[]);
}

function runView({ held, heldBy, isFrozen, isHeld, limit, position, since, ...row }: QueuedRunRow, caller: Caller) {
  const { project, stack } = row;
  const isRunning = row.updateId !== null;
  const cause: keyof typeof reasons = isHeld ? 'lock' : heldBy !== null ? 'limit' : isFrozen ? 'freeze' : 'turn';
  return {
    ...row,
    position,
    state: isRunning ? ('running' as const) : ('waiting' as const),
    branch: branchName(row.branch),
    since: since.toISOString(),
    ciUrl: httpUrl(row.ciUrl),
    mayStop: permits(held ?? permissionsOn(caller, { project, stack, tags: {} }), 'write'),
    /** Why the run waits; null: it has the lock. */
    cause: isRunning ? null : cause,
    why: isRunning ? 'holds the stack' : `waits ${reasons[cause](limit)}`,
  };
}

const reasons = {
  lock: () => 'for the stack',
  limit: (most: number | null) => `for a limit${most === null ? '' : ` of ${most} updates at once`}`,
  freeze: () => 'for the end of a freeze',
  turn: () => 'for its turn',
};
