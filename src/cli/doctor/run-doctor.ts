import { type Config, ConfigError } from '../../shared/platform/config/config.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { Redactor } from '../redaction/redactor.ts';
import { type Check, checkMs, type Finding, runChecks } from './check.ts';
import { databaseChecks } from './database-checks.ts';
import { machineChecks } from './machine-checks.ts';
import { publicUrlChecks } from './public-url-checks.ts';
import { redisChecks } from './redis-checks.ts';
import { storeChecks } from './store-checks.ts';
import { Visit } from './visit.ts';

/** All checks that apply to the settings. Invalid settings are a finding, too. Never throws findings. */
export async function runDoctor(load: () => Config, limitMs = checkMs): Promise<Finding[]> {
  let config: Config;
  try {
    config = load();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const seen = error.message.replace(/^Invalid settings:\n\s*/, '').replaceAll(/\n\s*/g, ' ');
    const fix =
      error instanceof ConfigError
        ? 'Correct the settings: docs/settings.md says what each may be.'
        : 'Make the settings file usable.';
    return [{ name: 'settings', status: 'fail', seen: new Redactor().sentence(seen), fix }];
  }
  await using visit = new Visit(config, limitMs);
  const checks: Check[] = [
    ...machineChecks(config),
    ...databaseChecks(visit),
    ...redisChecks(visit),
    ...storeChecks(visit),
    ...publicUrlChecks(visit),
  ];
  const redactor = new Redactor(undefined, [visit.masterKeys]);
  return (await runChecks(checks, limitMs)).map((finding) => ({ ...finding, seen: redactor.sentence(finding.seen) }));
}
