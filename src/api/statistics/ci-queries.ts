import { isByProject, type SubjectFacts } from '../../shared/access/access-decision.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import { getListedOrganization } from '../access/organizations.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import type { Caller } from '../platform/http/request.ts';
import { branchName } from '../updates/setting-views.ts';
import {
  type CiPosition,
  type CiStatisticsRow,
  createCiQueryRepository,
  type DriftedRow,
  type RefusalCountRow,
  type RefusedRow,
} from './ci-query-repository.ts';

export interface RefusedQuery {
  readonly days: number;
  readonly reasons: readonly string[] | null;
  readonly project: string | null;
  readonly after: CiPosition | null;
  readonly limit: number;
}

/** Results of runs on stacks that the caller may read. */
export class CiQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Statistics by day and by project. */
  async sum(caller: Caller, name: string, days: number) {
    const organization = await getListedOrganization(this.#db, caller.tokenId, name);
    const queries = createCiQueryRepository(readsByGrants(this.#db, [organization]));
    const [statistics, refusals] = await Promise.all([
      hasSums(organization) ? queries.sumProjects(organization, days) : queries.sum(organization, days),
      queries.countRefused(organization, days),
    ]);
    const refusedOn = keyed(refusals, ({ day }) => day);
    const refusedIn = keyed(refusals, ({ project }) => project);
    const ranOn = new Map(statistics.flatMap((row) => (row.day === null ? [] : [[row.day, row]])));
    const ranIn = new Map(statistics.flatMap((row) => (row.project === null ? [] : [[row.project, row]])));
    return {
      days: lastDays(days).map((day) => ({ day, ...statisticsView(ranOn.get(day), refusedOn.get(day)) })),
      projects: [...new Set([...ranIn.keys(), ...refusedIn.keys()])]
        .sort()
        .map((project) => ({ project, ...statisticsView(ranIn.get(project), refusedIn.get(project)) })),
      refusals: refusals
        .flatMap(({ reason, times }) => (reason === null ? [] : [{ reason, times }]))
        .sort((a, b) => b.times - a.times),
      /** There may be stacks that the caller may not read. */
      isTrimmed: organization.facts !== null,
    };
  }

  /** Refused, evicted from the queue or stopped, the newest first. */
  async listRefused(caller: Caller, name: string, query: RefusedQuery) {
    const organization = await getListedOrganization(this.#db, caller.tokenId, name);
    const limit = query.limit + 1;
    const rows = await createCiQueryRepository(readsByGrants(this.#db, [organization])).listRefused(organization, {
      ...query,
      limit,
    });
    return pageOf(rows, query.limit, ({ id, position }) => [position, id], refusalView);
  }

  /** The newest first. */
  async listDrifted(
    caller: Caller,
    name: string,
    query: {
      readonly days: number;
      readonly onlyDrifted: boolean;
      readonly after: CiPosition | null;
      readonly limit: number;
    },
  ) {
    const organization = await getListedOrganization(this.#db, caller.tokenId, name);
    const limit = query.limit + 1;
    const rows = await createCiQueryRepository(readsByGrants(this.#db, [organization])).listDrifted(organization, {
      ...query,
      limit,
    });
    return pageOf(rows, query.limit, ({ position, stackId }) => [position, stackId], driftView);
  }
}

/** Whether the caller may read, in each project, all stacks or none. */
export function hasSums({ facts }: ListedOrganization): boolean {
  return facts === null || isByProject(JSON.parse(facts) as Partial<SubjectFacts>);
}

function pageOf<R, S>(
  rows: readonly R[],
  limit: number,
  positionOf: (row: R) => CiPosition,
  shown: (row: R) => S,
): { items: S[]; next: CiPosition | null } {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { items: rows.slice(0, limit).map(shown), next: last ? positionOf(last) : null };
}

/** Up to today (UTC), the oldest first. */
function lastDays(count: number): string[] {
  const now = Date.now();
  return Array.from({ length: count }, (_, index) =>
    new Date(now - (count - 1 - index) * 24 * 3600 * 1000).toISOString().slice(0, 10),
  );
}

function keyed(rows: readonly RefusalCountRow[], key: (row: RefusalCountRow) => string | null) {
  return new Map(
    rows.flatMap((row): [string, RefusalCountRow][] => (key(row) === null ? [] : [[key(row) as string, row]])),
  );
}

const noRuns = {
  runs: 0,
  failed: 0,
  cancelled: 0,
  previews: 0,
  failedPreviews: 0,
  waits: 0,
  runMs: 0,
  waitedMs: 0,
  longestMs: 0,
};

function statisticsView(ran: CiStatisticsRow | undefined, refused: RefusalCountRow | undefined) {
  const { day: _day, project: _project, ...statistics } = ran ?? { ...noRuns, day: null, project: null };
  return {
    ...statistics,
    refused: refused?.times ?? 0,
    /** Runs that did not start count, too. */
    waitedMs: statistics.waitedMs + (refused?.waitedMs ?? 0),
  };
}

function refusalView({ ciUrl, id, position: _position, refusedAt, ...row }: RefusedRow) {
  return { ...row, id, branch: branchName(row.branch), ciUrl: httpUrl(ciUrl), at: refusedAt.toISOString() };
}

function driftView({ changes, cleanAt, foundAt, position: _position, since, ...row }: DriftedRow) {
  const counts = Object.values(JSON.parse(changes) as Record<string, unknown>);
  return {
    ...row,
    /** Resources that differ. */
    differences: counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0),
    since: since.toISOString(),
    foundAt: foundAt.toISOString(),
    cleanAt: cleanAt?.toISOString() ?? null,
  };
}
