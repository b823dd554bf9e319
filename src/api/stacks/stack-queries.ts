import { hasPermission, namesOf } from '../../shared/access/permissions.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { describeUnfinishedImport, stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { createCompactionRepository } from '../../shared/state/journal/compaction-repository.ts';
import { describeFault } from '../../shared/state/journal/journal-fault.ts';
import { findFreeze } from '../../shared/updates/rules/freeze.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import { describeScope } from '../../shared/updates/rules/update-rules.ts';
import { getListedOrganization, OrganizationNotVisibleError } from '../access/organizations.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { httpUrl } from '../platform/http/http-url.ts';
import type { Caller } from '../platform/http/request.ts';
import { StateSummaries, type StateSummary } from '../state/state-summaries.ts';
import { listFreezesInForce } from '../updates/rules/freezes-in-force.ts';
import { branchName, gitOf, readConfig, safeEnvironment } from '../updates/setting-views.ts';
import { createUpdateQueryRepository } from '../updates/update-query-repository.ts';
import { parseStackFilter, type StatusFilter } from './stack-filter.ts';
import { createStackQueryRepository, type OverviewRow } from './stack-query-repository.ts';
import { createTagRepository } from './tag-repository.ts';

const maxRenamed = 200;

/** The stacks of one organization. */
const maxCounted = 1_000;
/**
 * Up to this number of stacks with a tag are sorted. If the tag is common, a list reads the stacks that changed last until it has found
 * enough.
 */
const maxTagged = 1_000;

/** A stack must match all of them. */
export interface OverviewQuery {
  /** Null: all organizations of the caller. */
  readonly organization: string | null;
  /** Words, `owner:LOGIN`, `updated:<7d`. */
  readonly text: string | null;
  readonly project: string | null;
  readonly tag: { readonly name: string; readonly value: string | null } | null;
  readonly status: StatusFilter | null;
  readonly before: OverviewPosition | null;
  readonly limit: number;
}

/** The time of the stack's last change, in microseconds since the epoch, and its id. */
export interface OverviewPosition {
  readonly changedAt: string;
  readonly id: string;
}

export type StackCard = ReturnType<typeof cardOf>;

export class StackQueries {
  readonly #context: ApiContext;
  readonly #shown = new StateSummaries();

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Includes the number of stacks if the caller may read all of them. */
  async listOrganizations({ tokenId }: Caller) {
    const rows = await createStackQueryRepository(this.#context.db).listOrganizations(tokenId, maxCounted + 1);
    return rows.map(({ name, role, stacks }) => ({
      name,
      role,
      stackCount: stacks === null ? null : Math.min(stacks, maxCounted),
      /** More than were counted. */
      hasMoreStacks: stacks !== null && stacks > maxCounted,
    }));
  }

  /**
   * The last changed of the stacks that had this name before a rename. Null if the caller may read a stack that has the name now. Stacks
   * that the caller may not read are ignored.
   */
  async findRenamed(caller: Caller, ref: StackRef) {
    const mayRead = ({ project, stack, tags }: Pick<StackRow, 'project' | 'stack' | 'tags'>): boolean =>
      hasPermission(permissionsOn(caller, { ...ref, project, stack, tags: readTags(tags) }), 'read');
    const named = await this.#context.stacks.find(ref);
    if (named && mayRead(named)) return null;
    const rows = await createStackQueryRepository(this.#context.db).listRenamed(ref, maxRenamed);
    const found = rows.find(mayRead);
    return found ? { project: found.project, stack: found.stack } : null;
  }

  /** Tag names with this prefix, or with `name` the values of that tag, of stacks that the caller may read. */
  async listTags(
    { tokenId }: Caller,
    organization: string,
    { name, ...query }: { readonly name: string | null; readonly begin: string; readonly limit: number },
  ): Promise<string[]> {
    const { db } = this.#context;
    const listed = await getListedOrganization(db, tokenId, organization);
    const tags = createTagRepository(readsByGrants(db, [listed]));
    const rows = await (name === null ? tags.listNames(listed, query) : tags.listValues(listed, name, query));
    return rows.map(({ text }) => text);
  }

  /** The state is read only for its outputs. */
  async get(scan: StateScan, caller: Caller, ref: StackRef) {
    const { db } = this.#context;
    const found = await createUpdateRuleRepository(db).findStack(ref);
    const row = found && (await createStackQueryRepository(db).find(found.id));
    if (!found || !row) throw stackNotFound(ref);
    const [settings, faults, state] = await Promise.all([
      createUpdateQueryRepository(db).findLastSettings(found.id),
      createCompactionRepository(db).findFaults(found.id),
      this.#readState(scan, found),
    ]);
    const freeze = findFreeze(found.updateRules);
    const [fault] = faults;
    const unfinished = describeUnfinishedImport(found);
    return {
      ...cardOf(row),
      createdAt: row.createdAt.toISOString(),
      permissions: namesOf(permissionsInPath(caller, ref)),
      /** Rules stop updates until their commit is approved. */
      hasApprovals:
        found.updateRules.first('change-limit') !== null || found.updateRules.first('protected-types') !== null,
      outputs: state?.outputs ?? null,
      /** Operations in progress when the last update ended; 0 while an update runs. */
      pendingCount: found.activeUpdateId === null ? (state?.pending.length ?? 0) : 0,
      git: gitOf(safeEnvironment(settings?.environment ?? null)),
      fault:
        unfinished !== null
          ? { kind: 'import-unfinished', message: unfinished }
          : fault === undefined
            ? null
            : { kind: fault.compactionError === null ? 'warning' : 'incomplete', message: describeFault(fault) },
      frozen: freeze && {
        ruleId: freeze.rule.id,
        scope: describeScope(freeze.rule, ref.organization),
        /** The rule is only for this stack, and always in force, so that thawing the stack removes the rule. */
        isOfStackAlone: freeze.rule.stack !== null && freeze.rule.settings.windows === undefined,
        note: freeze.rule.note,
        until: freeze.until?.toISOString() ?? null,
      },
      config: readConfig(settings?.config ?? '{}'),
    };
  }

  /**
   * Operations of the newest version, which were in progress when its update ended. None while an update runs. `isKnown`: the state could
   * be read.
   */
  async pending(scan: StateScan, ref: StackRef) {
    const { db, stacks } = this.#context;
    const stack = await stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const state = await this.#readState(scan, stack);
    const leftBy =
      state === null || state.pending.length === 0
        ? null
        : await createUpdateQueryRepository(db).findLastRun(stack.id, stack.stackVersion);
    return {
      headVersion: stack.stackVersion,
      isKnown: state !== null,
      isCut: state?.isCut ?? false,
      isRunning: stack.activeUpdateId !== null,
      items: state?.pending ?? [],
      leftBy: leftBy && {
        version: leftBy.version,
        kind: leftBy.kind as string,
        status: leftBy.status as string,
        endReason: leftBy.endReason,
        by: leftBy.by,
        startedAt: leftBy.startedAt?.toISOString() ?? null,
        endedAt: leftBy.endedAt?.toISOString() ?? null,
        commit: leftBy.commit,
        ciUrl: httpUrl(leftBy.ciUrl),
      },
    };
  }

  /** Null while an update runs, or if the state cannot be read. */
  async #readState(scan: StateScan, { checkpointId, id, stackVersion }: StackRow): Promise<StateSummary | null> {
    if (stackVersion === 0) return { outputs: [], pending: [], isCut: false };
    const key = `${id} ${stackVersion} ${checkpointId}`;
    try {
      return await this.#shown.read(scan, key, async () => (await scan.readVersion(id, stackVersion))?.bytes ?? null);
    } catch (error) {
      scan.assertWanted();
      this.#context.logger.warn({ err: error, stackId: id, stackVersion }, 'outputs of a stack could not be read');
      return null;
    }
  }

  /** Stacks that the caller may read. Throws SearchQueryError. */
  async list(caller: Caller, query: OverviewQuery) {
    const { next, rows } = await this.listRows(caller, query);
    return { items: rows.map(cardOf), next };
  }

  /** Like `list`, with ids and `maxTags` tags of each stack. */
  async listRows(
    { tokenId }: Caller,
    { limit, organization, status, text, ...query }: OverviewQuery,
    maxTags?: number,
  ): Promise<{ readonly rows: readonly OverviewRow[]; readonly next: OverviewPosition | null }> {
    const { db } = this.#context;
    const asked = parseStackFilter(text ?? '');
    const organizations = await createStackListRepository(db).listOrganizations(tokenId, {
      name: organization,
      from: null,
    });
    if (organization !== null && organizations.length === 0) throw new OrganizationNotVisibleError();
    const frozenBy =
      status === 'frozen'
        ? await listFreezesInForce(
            db,
            organizations.map(({ id }) => id),
          )
        : null;
    if (organizations.length === 0 || frozenBy?.length === 0) return { rows: [], next: null };
    const stacks = createStackQueryRepository(readsByGrants(db, organizations));
    const { project, tag } = query;
    const isTagCommon = tag !== null && project === null && (await stacks.isTagCommon(organizations, tag, maxTagged));
    const filter = {
      ...query,
      ...asked,
      isTagCommon,
      organizations,
      status: status === 'frozen' ? null : status,
      frozenBy,
    };
    const rows = await stacks.list({ ...filter, limit: limit + 1 }, maxTags);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      rows: page,
      next: last && rows.length > limit ? { changedAt: last.changedAt, id: last.id } : null,
    };
  }
}

/** Times are ISO strings. */
export function cardOf(row: OverviewRow) {
  return {
    organization: row.organization,
    project: row.project,
    stack: row.stack,
    version: row.stackVersion,
    resourceCount: row.resourceCount,
    tags: row.tags === null ? {} : readTags(row.tags),
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
            branch: branchName(row.activeBranch),
            commit: row.activeCommit,
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
