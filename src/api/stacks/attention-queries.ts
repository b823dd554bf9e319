import { permissionSet, permits } from '../../shared/access/permissions.ts';
import { rolePermissions } from '../../shared/access/roles.ts';
import { createStackListRepository, type ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import { freezeTimes } from '../../shared/updates/rules/freeze.ts';
import type { RuleSettings } from '../../shared/updates/rules/rule-kinds.ts';
import { describeScope } from '../../shared/updates/rules/update-rules.ts';
import type { CallTarget } from '../access/authorize-call.ts';
import { OrganizationNotVisibleError } from '../access/organizations.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import type { Caller } from '../platform/http/request.ts';
import { type ApprovalPosition, ApprovalQueries } from '../updates/approvals/approval-queries.ts';
import { listFreezesInForce } from '../updates/rules/freezes-in-force.ts';
import { branchName } from '../updates/setting-views.ts';
import { createUpdateQueryRepository, type QueuedRunRow } from '../updates/update-query-repository.ts';
import { createAttentionRepository, type FrozenRow, type TroubledRow } from './attention-repository.ts';

/** Rows of each kind; the lists of stacks, approvals and runs have the rest. */
const maxItems = 5;
/** Larger counts are not exact. */
const maxCounted = 100;
/**
 * Stacks and approvals to examine, the newest change first: a failure, an interruption and a check for drift are changes. `searched`:
 * maximum number of a freeze's stacks to search for a readable one.
 */
const mostStacks = { scanned: 5_000, searched: 50_000 };
/** Organizations whose approvals are read, and pages for each. The caller's own requests, which they may not approve, can fill pages. */
const maxApproving = 20;
const maxPages = 5;
const longWaitSeconds = 600;

/** Items over all organizations of a user, or in one. */
export class AttentionQueries {
  readonly #db: ApiContext['db'];
  readonly #approvals: ApprovalQueries;
  readonly #most: typeof mostStacks;

  constructor({ db }: Pick<ApiContext, 'db'>, most = mostStacks) {
    this.#db = db;
    this.#most = most;
    this.#approvals = new ApprovalQueries({ db });
  }

  /**
   * The newest items of each kind with their counts, limited to stacks that the caller may read. `findAt`: the facts that decide about the
   * caller at a target.
   */
  async list({ tokenId }: Caller, name: string | null, findAt: (target: CallTarget) => Promise<Caller>) {
    const organizations = await createStackListRepository(this.#db).listOrganizations(tokenId, { name, from: null });
    if (name !== null && organizations.length === 0) throw new OrganizationNotVisibleError();
    const db = readsByGrants(this.#db, organizations);
    const rows = createAttentionRepository(db);
    const troubled = await rows.listTroubled(organizations, this.#most.scanned, maxItems);
    const isPartial = await rows.hasMore(organizations, this.#most.scanned);
    const { isCut, ...frozen } = await this.#listFrozen(organizations);
    const waiting = await createUpdateQueryRepository(db).listLongWaits(organizations, longWaitSeconds, maxCounted + 1);
    const { hasMore: hasMoreApprovals, ...approvals } = await this.#listApprovals(organizations, findAt);
    return {
      failed: troubleOf(troubled, 'failed'),
      interrupted: troubleOf(troubled, 'interrupted'),
      drifted: troubleOf(troubled, 'drifted'),
      approvals,
      frozen,
      queued: groupOf(waiting.map(runView)),
      /** Some stacks or requests were not examined. */
      isPartial: isPartial || isCut || hasMoreApprovals,
    };
  }

  /** Pending requests that the caller may approve. */
  async #listApprovals(organizations: readonly ListedOrganization[], findAt: (target: CallTarget) => Promise<Caller>) {
    const attention = createAttentionRepository(this.#db);
    const names = await attention.listWithApprovals(organizations, maxApproving + 1);
    const found = [];
    let hasMore = names.length > maxApproving;
    for (const organization of names.slice(0, maxApproving)) {
      const target = { organization, project: null, stack: null };
      const { id, facts } = organizations.find(({ name }) => name === organization) as ListedOrganization;
      const caller = await findAt(target);
      // The role decides, and permits no approval.
      if (facts === null && (caller.role === null || !permits(rolePermissions[caller.role], 'admin'))) continue;
      const maxScanned = this.#most.scanned;
      const query = { ...target, isGiven: false, held: permissionSet(['admin']), limit: maxCounted + 1, maxScanned };
      let before: ApprovalPosition | null = null;
      let count = 0;
      for (let pages = 0; pages < maxPages && (pages === 0 || before !== null) && count <= maxCounted; pages++) {
        const page = await this.#approvals.list(caller, { ...query, before });
        const items = page.items.filter(({ mayGive }) => mayGive);
        found.push(...items.map((each) => ({ organization, ...each })));
        count += items.length;
        before = page.next;
      }
      if (count <= maxCounted) hasMore ||= before !== null || (await attention.hasMoreApprovals(id, maxScanned));
    }
    return { ...groupOf(found.sort((a, b) => (a.askedAt < b.askedAt ? 1 : -1))), hasMore };
  }

  async #listFrozen(organizations: readonly ListedOrganization[]) {
    const ids = await listFreezesInForce(
      this.#db,
      organizations.map(({ id }) => id),
    );
    if (ids.length === 0) return { ...groupOf([]), isCut: false };
    const { scanned, searched } = this.#most;
    const limits = { limit: maxCounted + 1, maxCounted: maxCounted + 1, maxScanned: scanned };
    const attention = createAttentionRepository(readsByGrants(this.#db, organizations));
    const rows = await attention.listFrozen(organizations, ids, limits);
    // The caller may be unable to read any of the first stacks of a freeze.
    const missed = rows.filter(({ hasMore }) => hasMore).map(({ id }) => id);
    const again = missed.slice(0, maxItems);
    const late =
      again.length === 0 ? [] : await attention.listFrozen(organizations, again, { ...limits, maxScanned: searched });
    const found = [...rows, ...late].filter(({ stacks }) => stacks > 0);
    return {
      ...groupOf(found.sort((one, other) => other.since.getTime() - one.since.getTime()).map(freezeView)),
      isCut: missed.length > again.length || late.some(({ hasMore }) => hasMore),
    };
  }
}

function groupOf<Item>(items: readonly Item[]) {
  return { items: items.slice(0, maxItems), count: items.length };
}

function troubleOf(rows: readonly TroubledRow[], trouble: TroubledRow['trouble']) {
  const items = rows.filter((row) => row.trouble === trouble);
  return {
    items: items.map(({ ciUrl, count: _count, since, ...row }) => ({
      ...row,
      ciUrl: httpUrl(ciUrl),
      since: since.toISOString(),
    })),
    count: items[0]?.count ?? 0,
  };
}

function freezeView({ hasMore: _, now, settings, since, tagName, tagValue, ...row }: FrozenRow) {
  const { organization, project, stack } = row;
  const tag = tagName === null ? null : { name: tagName, value: tagValue ?? '' };
  const times = freezeTimes(JSON.parse(settings) as RuleSettings<'freeze'>, now, 0);
  return {
    ...row,
    tag,
    scope: describeScope({ project, stack, tag }, organization),
    since: since.toISOString(),
    until: times.inForce?.until?.toISOString() ?? null,
  };
}

function runView({ branch, ciUrl, organization, since, ...row }: QueuedRunRow) {
  const { by, commit, kind, placeId, position, project, stack } = row;
  const times = { since: since.toISOString() };
  return {
    organization,
    project,
    stack,
    placeId,
    position,
    kind,
    by,
    commit,
    ...times,
    branch: branchName(branch),
    ciUrl: httpUrl(ciUrl),
  };
}
