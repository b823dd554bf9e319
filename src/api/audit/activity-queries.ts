import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { actorName, describeEvent } from '../../shared/audit/audit-formats.ts';
import type { AuditPosition } from '../../shared/audit/audit-list-repository.ts';
import { getListedOrganization } from '../access/organizations.ts';
import { manages } from '../access/people-access.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import type { Caller } from '../platform/http/request.ts';
import { type ActivityRow, createActivityRepository } from './activity-repository.ts';

const runs: readonly AuditAction[] = [
  'update.start',
  'update.cancel',
  'update.drain',
  'update.evict',
  'update.stop',
  'update.expire',
  'update.break-glass',
];

/** An update has one event: its start, which is shown with the current status. */
const actionsOf = {
  updates: runs,
  previews: runs,
  approvals: ['approval.ask', 'approval.give', 'approval.withdraw', 'approval.use'],
  freezes: ['update-rule.set', 'update-rule.remove'],
  stacks: [
    'stack.create',
    'stack.delete',
    'stack.undelete',
    'stack.rename',
    'stack.tags',
    'stack.import',
    'stack.restore',
    'stack.repair',
  ],
} as const satisfies Readonly<Record<string, readonly AuditAction[]>>;
export type ActivityKind = keyof typeof actionsOf;

/** The only rules in the list are freezes. */
const freezeWords: Readonly<Record<string, string>> = {
  'update-rule.set': 'Set a freeze',
  'update-rule.remove': 'Removed a freeze',
};

/** The events of the log that are scanned for a page. */
const maxRead = 2_000;

export interface ActivityQuery {
  /** Null: every kind. */
  readonly kind: ActivityKind | null;
  readonly login: string | null;
  readonly project: string | null;
  readonly stack: string | null;
  readonly after: AuditPosition | null;
  readonly limit: number;
}

/** The history of an organization, for everybody who may read its stacks. */
export class ActivityQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** The newest events come first. `next`: the position of the next page, even if this page has no event; null at the end. */
  async list(caller: Caller, organization: string, { kind, limit, ...query }: ActivityQuery) {
    const found = await getListedOrganization(this.#db, caller.tokenId, organization);
    // An admin may read the log itself.
    const listed = manages(caller) ? { ...found, facts: null } : found;
    const actions = kind === null ? Object.values(actionsOf).flat() : actionsOf[kind];
    const isPreview = kind === 'updates' ? false : kind === 'previews' ? true : null;
    const rows = await createActivityRepository(readsByGrants(this.#db, [listed])).list(
      listed,
      { ...query, actions, isPreview },
      { limit: limit + 1, maxRead },
    );
    const matching = rows.filter(({ isFound }) => isFound);
    const items = matching.slice(0, limit);
    const next: AuditPosition | null =
      (matching.length > limit ? items.at(-1) : rows.find(({ isLast }) => isLast)) ?? null;
    return { items: items.map((row) => activityView(row, organization)), next };
  }
}

/** Times are ISO strings. */
function activityView(row: ActivityRow, organization: string) {
  const { action, object } = row;
  const [of, project, stack, more] = object.replace(/^stack /, `${organization}/`).split('/');
  const isStack = of === organization && project && stack && more === undefined;
  return {
    number: row.number,
    at: row.occurredAt.toISOString(),
    action,
    description: freezeWords[action] ?? describeEvent({ action, object: '', outcome: 'done' }),
    by: actorName(row),
    isPerson: row.actor === 'user',
    /** Null: the event is about `scope`. */
    stack: isStack ? { project, stack } : null,
    scope: isStack ? null : object,
    update:
      row.updateId === null
        ? null
        : {
            updateId: row.updateId,
            version: row.version,
            kind: row.kind as string,
            dryRun: row.dryRun as boolean,
            status: row.status as string,
            endedAt: row.endedAt?.toISOString() ?? null,
            message: row.message as string,
            commit: row.commit,
            ciUrl: httpUrl(row.ciUrl),
          },
  };
}
