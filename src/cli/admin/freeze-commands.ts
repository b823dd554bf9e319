import type { Command } from 'commander';
import { setRule } from '../../shared/updates/rules/set-rule.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import { describeScope, parseRule, type RuleScope, scopeOf } from '../../shared/updates/rules/update-rules.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, subjects, type Work } from './audited-action.ts';
import { findOrganization, orRefused, refused } from './people-rules.ts';
import { readScope, type ScopeOptions, withScope } from './rule-commands.ts';

interface FreezeOptions extends ScopeOptions {
  readonly note?: string;
  readonly until?: string;
  readonly wait?: true;
  readonly window?: string[];
  readonly minutes?: string;
  readonly timeZone?: string;
}

export function addFreezeCommands(admin: Command, open: OpenSession): void {
  withScope(admin.command('freeze'))
    .description('freeze stacks: refuse updates, but not previews')
    .option('--note <text>', 'the reason, shown to users')
    .option('--until <time>', 'end, such as 2026-12-01T06:00:00Z (default: until thawed)')
    .option('--wait', 'let updates wait up to the lock-wait time instead of refusing them')
    .option('--window <cron...>', 'only in windows that start at these times, such as "0 17 * * 5"')
    .option('--minutes <minutes>', 'how long each window lasts')
    .option('--time-zone <zone>', 'time zone of the windows, such as Europe/Berlin (default: UTC)')
    .action(changeAction(open, 'update-rule.set', freeze, subjects.ruleScope));
  withScope(admin.command('thaw'))
    .description('thaw exactly these stacks: end all their freezes')
    .action(changeAction(open, 'update-rule.remove', thaw, subjects.ruleScope));
}

async function freeze(work: Work, given: FreezeOptions): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const { minutes, note = '', timeZone = 'UTC', until, window } = given;
  if ((window === undefined) !== (minutes === undefined))
    throw refused('--window and --minutes must be given together');
  const settings = {
    ...(given.wait ? { mode: 'wait' } : {}),
    ...(until === undefined ? {} : { until }),
    ...(window === undefined ? {} : { windows: window.map((cron) => ({ cron, timeZone, minutes: Number(minutes) })) }),
  };
  const rule = orRefused(() => parseRule({ kind: 'freeze', ...readScope(given), settings, note }));
  await createUpdateRuleRepository(work.tx).lockForChange(organization.id);
  const { id, isRepeated } = await setRule(work.tx, organization.id, rule, null);
  const shown = describeScope(rule, organization.name);
  if (isRepeated) work.unchanged();
  work.say(
    isRepeated ? `${shown} is frozen already (rule ${id}).` : `Froze ${shown} (rule ${id}). Running updates go on.`,
  );
}

async function thaw(work: Work, given: ScopeOptions): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const scope = readScope(given);
  const rules = createUpdateRuleRepository(work.tx);
  await rules.lockForChange(organization.id);
  const found = (await rules.list(organization.id)).filter(
    (row) => row.kind === 'freeze' && isSame(scopeOf(row), scope),
  );
  for (const { id } of found) await rules.remove(organization.id, id);
  const shown = describeScope(scope, organization.name);
  if (found.length === 0) work.unchanged();
  work.say(found.length === 0 ? `There is no freeze of ${shown}.` : `Thawed ${shown}.`);
}

function isSame(one: RuleScope, other: RuleScope): boolean {
  return (
    one.project === other.project &&
    one.stack === other.stack &&
    one.tag?.name === other.tag?.name &&
    one.tag?.value === other.tag?.value
  );
}
