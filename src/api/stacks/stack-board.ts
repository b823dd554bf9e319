import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { httpUrl } from '../../shared/platform/http/http-url.ts';
import { type BoardRow, createStackBoardRepository } from '../../shared/stacks/stack-board-repository.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import { listFreezesInForce } from '../../shared/updates/rules/freezes-in-force.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller } from '../request.ts';

/** Which stacks a list shows: those for which all that is given holds. */
export interface BoardQuery {
  /** Null: all of the caller's. */
  readonly organization: string | null;
  readonly text: string | null;
  readonly project: string | null;
  readonly tag: { readonly name: string; readonly value: string | null } | null;
  readonly status: 'running' | 'failed' | 'drifted' | 'frozen' | null;
  readonly before: BoardPlace | null;
  readonly limit: number;
}

/** A place in the list: when the stack was changed, in microseconds since the epoch, and its id. */
export interface BoardPlace {
  readonly changedAt: string;
  readonly id: string;
}

export type StackCard = ReturnType<typeof cardOf>;

/** What the dashboard shows of stacks. */
export class StackBoard {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** The caller's organizations; with the number of their stacks where the caller may read all of them. */
  async listOrganizations({ tokenId }: Caller) {
    const rows = await createStackBoardRepository(this.#context.db).listOrganizations(tokenId);
    return rows.map(({ name, role, stacks }) => ({ name, role, stackCount: stacks }));
  }

  /** A page of the stacks that the caller may read, and the place of its last one if there are more. Throws NotFoundError. */
  async list(
    { tokenId }: Caller,
    { limit, organization, status, ...query }: BoardQuery,
  ): Promise<{ readonly items: StackCard[]; readonly next: BoardPlace | null }> {
    const { db } = this.#context;
    const organizations = await createStackListRepository(db).listOrganizations(tokenId, {
      name: organization,
      from: null,
    });
    if (organization !== null && organizations.length === 0)
      throw new NotFoundError('Not found, or you are not a member of the organization');
    const frozenBy =
      status === 'frozen'
        ? await listFreezesInForce(
            db,
            organizations.map(({ id }) => id),
          )
        : null;
    if (organizations.length === 0 || frozenBy?.length === 0) return { items: [], next: null };
    const rows = await createStackBoardRepository(db).list({
      ...query,
      organizations,
      status: status === 'frozen' ? null : status,
      frozenBy,
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      items: page.map(cardOf),
      next: last && rows.length > limit ? { changedAt: last.changedAt, id: last.id } : null,
    };
  }
}

/** A stack as the dashboard shows it. Times are ISO strings. */
export function cardOf(row: BoardRow) {
  return {
    organization: row.organization,
    project: row.project,
    stack: row.stack,
    version: row.stackVersion,
    resourceCount: row.resourceCount,
    tags: row.tags === null ? {} : (JSON.parse(row.tags) as Record<string, string>),
    lastUpdate:
      row.lastId === null
        ? null
        : {
            updateId: row.lastId,
            version: row.lastVersion,
            kind: row.lastKind as string,
            result: row.lastStatus as string,
            startedAt: row.lastStartedAt?.toISOString() ?? null,
            endedAt: row.lastEndedAt?.toISOString() ?? null,
            by: row.lastBy,
            commit: row.lastCommit,
            ciUrl: httpUrl(row.lastCiUrl),
          },
    active:
      row.activeId === null
        ? null
        : {
            updateId: row.activeId,
            kind: row.activeKind as string,
            by: row.activeBy,
            since: row.activeSince?.toISOString() ?? null,
            ciUrl: httpUrl(row.activeCiUrl),
          },
    waiting: row.waiting,
    drift: driftOf(row.isDrifted),
    updatedAt: row.updatedAt.toISOString(),
  };
}

function driftOf(isDrifted: boolean | null): 'drifted' | 'clean' | 'unknown' {
  if (isDrifted === null) return 'unknown';
  return isDrifted ? 'drifted' : 'clean';
}
