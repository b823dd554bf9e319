import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createImportRunRepository, type ImportRunRow } from '../../shared/stacks/import-run-repository.ts';
import type { ApiContext } from '../platform/api-context.ts';

/** Runs of `holdfast import`. */
export class ImportRuns {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** The newest first. */
  async list(organization: string, before: number | null, limit: number) {
    const rows = await this.#rows().list(organization, before, limit + 1);
    const items = rows.slice(0, limit);
    return { items: items.map(runView), next: rows.length > limit ? (items.at(-1)?.number ?? null) : null };
  }

  async get(organization: string, id: string) {
    const run = await this.#rows().find(organization, id);
    if (!run) throw new NotFoundError('There is no such import');
    return runView(run);
  }

  /** The stacks of a run by name. */
  async listStacks(organization: string, id: string, after: string | null, limit: number) {
    const rows = await this.#rows().listStacks(organization, id, after ?? '', limit + 1);
    const items = rows.slice(0, limit);
    return {
      items: items.map(({ notes, ...item }) => ({ ...item, notes: JSON.parse(notes) as string[] })),
      next: rows.length > limit ? (items.at(-1)?.name ?? null) : null,
    };
  }

  #rows() {
    return createImportRunRepository(this.#context.db);
  }
}

function runView({ differentStacks, endedAt, number: _, startedAt, verifiedAt, verifiedStacks, ...run }: ImportRunRow) {
  return {
    ...run,
    startedAt: startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
    sourceKind: sourceKindOf(run.source),
    /** Null: not compared with the source since. */
    verified: verifiedAt && {
      at: verifiedAt.toISOString(),
      stacks: verifiedStacks ?? 0,
      differentStacks: differentStacks ?? 0,
    },
  };
}

function sourceKindOf(source: string): 'service' | 'bucket' | 'archive' | 'folder' {
  if (/^https?:/i.test(source)) return 'service';
  if (/^s3:/i.test(source)) return 'bucket';
  return source.startsWith('archive ') ? 'archive' : 'folder';
}
