import type { AppContext } from '../../shared/context.ts';
import { storedPreview } from '../../shared/diy/history-info.ts';
import { messageOf } from './import-plan.ts';
import { createImportedPreviewRepository, type ImportedPreviewRow } from './imported-preview-repository.ts';
import type { SourceContent, SourcePreview } from './moving-source.ts';
import { countEvents } from './source-events.ts';
import { type Decrypt, hashDecryptedConfig } from './stack-secrets.ts';
import { countStoredEvents } from './stored-events.ts';

const pageRows = 500;

interface Compared {
  readonly context: AppContext;
  readonly content: SourceContent;
  readonly stackId: string;
}

/** Except previews that were deleted here since their import. */
export async function verifyPreviews(
  compared: Compared,
): Promise<{ readonly equal: number; readonly problems: readonly string[] }> {
  const { content, context, stackId } = compared;
  const problems: string[] = [];
  let equal = 0;
  const bySource = new Map((content.previews ?? []).map((preview) => [preview.id, preview]));
  if (bySource.size === 0) return { equal, problems };
  const repository = createImportedPreviewRepository(context.db);
  const known = await repository.listEntries(stackId);
  for (const id of bySource.keys()) if (!known.has(id)) problems.push(`preview ${id} is not here`);
  for (let after = ''; ; ) {
    const page = await repository.list(stackId, after, pageRows);
    for (const row of page) {
      const preview = bySource.get(row.entry);
      if (!preview) continue;
      const differences = await compare(compared, preview, row);
      if (differences.length > 0) problems.push(`preview ${row.entry} has another ${differences.join(', ')}`);
      else equal++;
    }
    if (page.length < pageRows) return { equal, problems };
    after = (page.at(-1) as ImportedPreviewRow).entry;
  }
}

async function compare(
  { content, context, stackId }: Compared,
  { events, info: readInfo }: SourcePreview,
  row: ImportedPreviewRow,
): Promise<string[]> {
  const info = await readInfo().catch((error: unknown) => messageOf(error));
  if (typeof info === 'string') return [info];
  const startTime = info.startTime || info.endTime;
  const there = {
    ...{ ...storedPreview(info), message: info.message, environment: info.environment },
    ...{ resourceChanges: info.resourceChanges, startTime, endTime: Math.max(info.endTime, startTime) },
  };
  const here = { ...row, startTime: row.startedAt.getTime() / 1000, endTime: row.endedAt.getTime() / 1000 };
  const names = Object.keys(there) as (keyof typeof there)[];
  const differences: string[] = names.filter((name) => there[name] !== here[name]);
  const decrypt: Decrypt = (ciphertexts) =>
    context.cipher.decryptEach(
      [stackId],
      ciphertexts.map((each) => Buffer.from(each, 'base64')),
    );
  const config = content.decrypt === null ? info.config : await hashDecryptedConfig(info.config, content.decrypt);
  if (config !== (content.decrypt === null ? row.config : await hashDecryptedConfig(row.config, decrypt)))
    differences.push('config');
  if (events !== null && row.hasEvents && (await countEvents(events)) !== (await countStoredEvents(context, row)))
    differences.push('number of events');
  return differences;
}
