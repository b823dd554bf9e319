import { parseArgs } from 'node:util';
import { createContext } from '../shared/context.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { readMasterKeys } from '../shared/platform/config/data-dir.ts';
import { createLogger } from '../shared/platform/logger/logger.ts';
import { formatStackRef, parseQualifiedName } from '../shared/stacks/names.ts';
import { checkDocuments } from '../shared/states/check-documents.ts';
import { reachDatabase } from './admin-database.ts';

/**
 * `holdfast admin scrub [--stack organization/project/stack]`: reads all stored documents now, repairs what can be repaired and
 * prints what became of them. Returns the exit code: 1 when something stays damaged or could not be read.
 */
export async function runScrub(config: Config, args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { stack: { type: 'string' } } });
  const ref = values.stack === undefined ? null : parseQualifiedName(values.stack);
  if (values.stack !== undefined && !ref) {
    console.error(`holdfast: ${JSON.stringify(values.stack)} is not of the form organization/project/stack`);
    return 2;
  }
  // Standard output is for the summary.
  const logger = createLogger({ level: config.logLevel }, process.stderr);
  const databaseUrl = await reachDatabase(config, logger);
  const masterKeys = config.secrets.masterKeys ?? readMasterKeys(config.dataDir);
  await using context = await createContext(config, { databaseUrl, masterKeys }, { logger });
  const stack = ref && (await context.stacks.find(ref));
  if (ref && !stack) {
    console.error(`holdfast: there is no stack ${formatStackRef(ref)}`);
    return 1;
  }
  const { checked, damaged, repaired, unrepaired, unread } = await checkDocuments(context, stack?.id ?? null);
  console.log(`Checked ${checked} documents: ${damaged} damaged, ${repaired} of them repaired.`);
  for (const id of unrepaired) {
    const owner = await context.documentChecks.findOwner(id);
    if (owner) console.log(`Damaged: ${formatStackRef(owner)}, version ${owner.stackVersion ?? 0} (checkpoint ${id})`);
  }
  for (const { id, error } of unread) console.log(`Not read: ${id}: ${(error as Error).message}`);
  return unrepaired.length + unread.length === 0 ? 0 : 1;
}
