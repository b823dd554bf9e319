import { getListedOrganization } from '../access/organizations.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { hasSums } from './ci-queries.ts';
import { createProjectDeliveryRepository, type DeliveryRow } from './project-delivery-repository.ts';

/** Metrics of stacks that the caller may read. */
export class DeliveryQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Metrics of all projects together, and of each project with finished runs, by name. */
  async sum(caller: Caller, name: string, days: number) {
    const organization = await getListedOrganization(this.#db, caller.tokenId, name);
    const deliveries = createProjectDeliveryRepository(readsByGrants(this.#db, [organization]));
    const rows = await (hasSums(organization) ? deliveries.sumProjects : deliveries.sum)(organization, days);
    const total = rows.find(({ project }) => project === null) ?? nothing;
    return {
      days,
      total: deliveryView(total, days),
      projects: rows.flatMap((row) =>
        row.project === null || row.finished === 0 ? [] : [{ project: row.project, ...deliveryView(row, days) }],
      ),
      /** There may be stacks that the caller may not read. */
      isTrimmed: organization.facts !== null,
    };
  }
}

const nothing: DeliveryRow = {
  ...{ project: null, finished: 0, failed: 0, changed: 0, leads: 0, lead: null, restores: 0, restore: null },
};

function deliveryView({ changed, failed, finished, lead, leads, restore, restores }: DeliveryRow, days: number) {
  return {
    ...{ finished, failed, changed },
    changesPerDay: changed / days,
    /** Null: no run has finished. */
    failureRate: finished === 0 ? null : failed / finished,
    leadTime: timesView(leads, lead),
    timeToRestore: timesView(restores, restore),
  };
}

/** Null: there are no deliveries. */
function timesView(count: number, quantiles: DeliveryRow['lead']) {
  const [medianSeconds, p90Seconds] = quantiles ?? [];
  return medianSeconds === undefined || p90Seconds === undefined ? null : { count, medianSeconds, p90Seconds };
}
