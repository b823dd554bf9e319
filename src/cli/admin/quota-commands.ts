import { type Command, Option } from 'commander';
import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import {
  limitsBy,
  noOverrides,
  type QuotaName,
  type QuotaOverrides,
  quotaNames,
  quotaOptions,
} from '../../shared/access/quotas/quotas.ts';
import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { lockPeople } from '../../shared/identity/bootstrap-repository.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';

const subjects: Readonly<Record<QuotaName, string>> = {
  stacks: 'stacks',
  keptBytes: 'bytes of states, journals, events and policy packs',
  inFlightBytes: 'body bytes in flight to workers',
  updates: 'concurrent updates',
  requestsPerSecond: 'requests per second',
};
const limitOptions = quotaNames.map((quota) => {
  const option = new Option(`--${quotaOptions[quota]} <limit>`, `maximum ${subjects[quota]}`);
  return { quota, option };
});

export function addQuotaCommands(admin: Command, open: OpenSession): void {
  const setting = admin
    .command('set-quota')
    .description('set the quotas of an organization')
    .argument('<organization>')
    .addHelpText('after', '\nA limit is a number, "unlimited", or "default" for the limit in the settings.');
  for (const { option } of limitOptions) setting.addOption(option);
  setting.action((organization: string, limits: Values) =>
    open().withDatabase((db) => setQuota(db, organization, limits)),
  );
  admin
    .command('quotas')
    .description('print the usage and limits of organizations (needs the settings of the servers)')
    .argument('[organization]')
    .option(...jsonOption)
    .action((organization: string | undefined, { json }: { readonly json?: true }) => {
      const session = open();
      return session.withDatabase((db) => printQuotas(db, session.config, { only: organization ?? null, json }));
    });
}

/** Values by commander's attribute names. */
type Values = Readonly<Record<string, string | undefined>>;

async function setQuota(db: Database, name: string, values: Values): Promise<void> {
  const given: Partial<Record<QuotaName, number | null>> = {};
  for (const { quota, option } of limitOptions) {
    const text = values[option.attributeName()];
    if (text === undefined) continue;
    const limit = parseLimit(text);
    if (limit === undefined) {
      throw new CommandRefusedError(
        `${option.long} must be a positive whole number, "unlimited" or "default"; it is ${JSON.stringify(text)}`,
      );
    }
    given[quota] = limit;
  }
  const found = await createIdentityRepository(db).findOrganization(name);
  if (!found) throw noOrganization(name);
  // Measured before the limit applies, because the limit is compared with the last measurement.
  if (given.keptBytes) await createStorageRepository(db).measure(found.id);
  const after = await db.inTransaction(async (tx) => {
    await lockPeople(tx);
    const changing = createQuotaRepository(tx);
    const organization = await createIdentityRepository(tx).findOrganization(name);
    if (!organization) throw noOrganization(name);
    const before = pick((await changing.listOverrides()).find((row) => row.organization === name) ?? noOverrides);
    const after = { ...before, ...given };
    if (quotaNames.every((quota) => after[quota] === null)) await changing.deleteOverrides(organization.id);
    else await changing.setOverrides(organization.id, after);
    const event = { organization: name, object: name, details: { before, after } };
    await createAuditRepository(tx).insert(operatorSource(operator()), { action: 'organization.quota', ...event });
    return after;
  });
  console.log(`Organization ${name}: ${describe(after)}. It takes effect within 5 s.`);
}

const pick = (limits: QuotaOverrides) =>
  Object.fromEntries(quotaNames.map((quota) => [quota, limits[quota]])) as Record<QuotaName, number | null>;

/** Undefined if the text is not a limit. */
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

async function printQuotas(
  db: Database,
  config: Config,
  { json, only }: { readonly only: string | null; readonly json: true | undefined },
): Promise<void> {
  const quotas = createQuotaRepository(db);
  const overrides = new Map((await quotas.listOverrides()).map((row) => [row.organization, row]));
  const rows = await quotas.listUsage({ onlyOwnLimits: false, limit: null });
  const shown = rows.filter(({ organization }) => only === null || organization === only);
  if (only !== null && shown.length === 0) throw noOrganization(only);
  const organizations = shown.map((row) => {
    const own = overrides.get(row.organization);
    const limits = limitsBy(config.quotas, own ?? noOverrides);
    const used: Partial<Record<QuotaName, number | null>> = row;
    const quotasOf = Object.fromEntries(
      quotaNames.map((quota) => {
        const isDefault = !own || own[quota] === null;
        return [quotaOptions[quota], { used: used[quota] ?? null, limit: limits[quota], isDefault }] as const;
      }),
    );
    return { organization: row.organization, measuredAt: row.measuredAt, quotas: quotasOf };
  });
  const lines = organizations.map(({ measuredAt, organization, quotas: quotasOf }) => {
    const parts = Object.entries(quotasOf).map(
      ([option, { isDefault, limit, used }]) =>
        `${option} ${used === null ? '' : `${used} of `}${limit ?? 'unlimited'}${isDefault ? ' (default)' : ''}`,
    );
    const measured = measuredAt === null ? '' : `; bytes measured ${measuredAt.toISOString()}`;
    return `${organization}: ${parts.join(', ')}${measured}`;
  });
  printResult('admin quotas', { organizations }, { json, text: lines.join('\n') });
}

const noOrganization = (name: string): CommandRefusedError =>
  new CommandRefusedError(`there is no organization ${JSON.stringify(name)}`);
