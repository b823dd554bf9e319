import type { ImportRun } from '../../platform/app/procedure-types.ts';
import { importTexts } from './texts.ts';

const kinds: Readonly<Record<string, string>> = {
  import: importTexts.import,
  verify: importTexts.comparison,
  rollback: importTexts.rollback,
};

/** A newer server may have other kinds. */
export function kindOf({ kind }: Pick<ImportRun, 'kind'>): string {
  return kinds[kind] ?? kind;
}

const sourceKinds: Readonly<Record<ImportRun['sourceKind'], string>> = {
  service: importTexts.service,
  bucket: importTexts.bucket,
  folder: importTexts.folder,
  archive: importTexts.archive,
};

const titles: Readonly<Record<string, (source: string) => string>> = {
  import: importTexts.importFrom,
  verify: importTexts.comparisonWith,
  rollback: importTexts.rollbackFrom,
};

/** For example `Import from a Pulumi-compatible service`. */
export function titleOf({ kind, sourceKind }: Pick<ImportRun, 'kind' | 'sourceKind'>): string {
  const source = sourceKinds[sourceKind] ?? sourceKind;
  return titles[kind]?.(source) ?? `${kind}: ${source}`;
}

/** Counts like `2 stacks, 5 versions, 1 preview`. */
export function countsOf({ previews, stacks, versions }: Pick<ImportRun, 'previews' | 'stacks' | 'versions'>): string {
  return [
    importTexts.stacks(stacks),
    ...(versions > 0 || stacks === 0 ? [importTexts.versions(versions)] : []),
    ...(previews > 0 ? [importTexts.previews(previews)] : []),
  ].join(', ');
}
