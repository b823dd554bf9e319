import { parseArgs } from 'node:util';
import { createIdentityRepository } from '../shared/identity/identity-repository.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { type Database, openDatabase } from '../shared/platform/db/database.ts';
import { mapDatabaseError } from '../shared/platform/db/sqlstate.ts';
import { createLogger } from '../shared/platform/logger/logger.ts';
import { createQuotaRepository } from '../shared/quotas/quota-repository.ts';
import {
  limitsBy,
  noOverrides,
  type QuotaName,
  type QuotaOverrides,
  quotaNames,
  quotaOptions,
} from '../shared/quotas/quotas.ts';
import { reachDatabase } from './admin-database.ts';

export const quotaUsage = `  set-quota <organization> [--stacks <limit>] [--bytes <limit>] [--in-flight-bytes <limit>] [--updates <limit>]
            [--requests-per-second <limit>]
                           limits what an organization may use; a limit is a number, "unlimited", or "default" for that of
                           the settings
  quotas [<organization>]  what organizations use, and their limits (with the settings of the servers)`;

export function isQuotaCommand(command: string): boolean {
  return command === 'set-quota' || command === 'quotas';
}

/** Runs one of the commands; returns the exit code. */
export async function runQuotaCommand(config: Config, command: string, args: string[]): Promise<number> {
  const options = Object.fromEntries(quotaNames.map((name) => [quotaOptions[name], { type: 'string' as const }]));
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const url = await reachDatabase(config, createLogger({ level: config.logLevel }, process.stderr));
  const db = await openDatabase({ ...config.database, url, poolSize: 2 });
  try {
    const problem =
      command === 'set-quota'
        ? await setQuota(db, positionals[0] ?? '', values as Values)
        : await printQuotas(db, config, positionals[0] ?? null);
    if (problem === null) return 0;
    console.error(`holdfast: ${problem}`);
    return 1;
  } catch (error) {
    throw mapDatabaseError(error);
  } finally {
    await db.close();
  }
}

type Values = Readonly<Record<string, string | undefined>>;

async function setQuota(db: Database, name: string, values: Values): Promise<string | null> {
  const quotas = createQuotaRepository(db);
  const organization = await createIdentityRepository(db).findOrganization(name);
  if (!organization) return `there is no organization ${JSON.stringify(name)}`;
  const before = (await quotas.listOverrides()).find((row) => row.organization === name) ?? noOverrides;
  const after: Record<QuotaName, number | null> = { ...noOverrides };
  for (const quota of quotaNames) {
    const text = values[quotaOptions[quota]];
    const limit = text === undefined ? before[quota] : parseLimit(text);
    if (limit === undefined) {
      return `--${quotaOptions[quota]} must be a whole number from 1 on, "unlimited" or "default"; it is ${JSON.stringify(text)}`;
    }
    after[quota] = limit;
  }
  if (quotaNames.every((quota) => after[quota] === null)) await quotas.deleteOverrides(organization.id);
  else await quotas.setOverrides(organization.id, after);
  if (after.keptBytes !== null && after.keptBytes > 0) await quotas.measure(organization.id);
  console.log(`Organization ${name}: ${describe(after)}. It takes effect within 5 s.`);
  return null;
}

/** Undefined when the text is no limit. */
function parseLimit(text: string): number | null | undefined {
  if (text === 'default') return null;
  if (text === 'unlimited') return 0;
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

function describe(limits: QuotaOverrides): string {
  return quotaNames
    .map((quota) => `${quotaOptions[quota]} ${limits[quota] === null ? 'default' : limits[quota] || 'unlimited'}`)
    .join(', ');
}

async function printQuotas(db: Database, config: Config, only: string | null): Promise<string | null> {
  const quotas = createQuotaRepository(db);
  const overrides = new Map((await quotas.listOverrides()).map((row) => [row.organization, row]));
  const rows = await quotas.listUsage({ onlyOwnLimits: false, limit: null });
  const shown = rows.filter(({ organization }) => only === null || organization === only);
  if (only !== null && shown.length === 0) return `there is no organization ${JSON.stringify(only)}`;
  for (const row of shown) {
    const own = overrides.get(row.organization);
    const limits = limitsBy(config.quotas, own ?? noOverrides);
    const used: Partial<Record<QuotaName, number | null>> = row;
    const parts = quotaNames.map((quota) => {
      const limit = limits[quota] === null ? 'unlimited' : String(limits[quota]);
      const share = used[quota];
      const source = own && own[quota] !== null ? '' : ' (default)';
      return `${quotaOptions[quota]} ${share === undefined || share === null ? '' : `${share} of `}${limit}${source}`;
    });
    const measured = row.measuredAt === null ? '' : `; bytes measured ${row.measuredAt.toISOString()}`;
    console.log(`${row.organization}: ${parts.join(', ')}${measured}`);
  }
  return null;
}
