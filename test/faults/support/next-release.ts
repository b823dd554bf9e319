import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundleServerInto } from '../../../testkit/bundles/bundled-server.ts';

const root = path.join(import.meta.dirname, '../../..');

/** A newer release: checkpoint jobs have a new schema in which a field has another name, and there is a migration. */
export class NextRelease implements Disposable {
  readonly directory: string;
  readonly migration = '9999_next_release';

  private constructor() {
    this.directory = mkdtempSync(path.join(tmpdir(), 'holdfast-next-'));
    for (const part of ['src', 'migrations', 'package.json']) {
      cpSync(path.join(root, part), path.join(this.directory, part), { recursive: true });
    }
    symlinkSync(path.join(root, 'node_modules'), path.join(this.directory, 'node_modules'));
    this.#edit('src/shared/state/checkpoints/checkpoint-writer.ts', [
      ["name: 'apply-checkpoint',\n  schemas: [1],", "name: 'apply-checkpoint',\n  schemas: [1, 2],"],
      [
        'arrivalSequence: Type.Union([Type.Integer(), Type.Null()]),',
        'arrivalSequence: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),\n  place: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),',
      ],
      [
        '      ...job,\n',
        '      ...job,\n      arrivalSequence: job.schema === 2 ? job.place : job.arrivalSequence,\n',
      ],
    ]);
    this.#edit('src/api/state/writes/checkpoints.routes.ts', [
      ['{ kind, dialect, fence, arrivalSequence }', '{ kind, dialect, fence, place: arrivalSequence }'],
    ]);
    writeFileSync(
      path.join(this.directory, 'migrations', `${this.migration}.sql`),
      `alter table updates add column next_note text not null default '';
       create table next_release (id bigint generated always as identity primary key);
      `,
    );
  }

  /** Copies this checkout, changes the copy and bundles it. */
  static async create(): Promise<NextRelease> {
    const release = new NextRelease();
    try {
      await bundleServerInto(release.#bundle, release.directory);
      return release;
    } catch (error) {
      release[Symbol.dispose]();
      throw error;
    }
  }

  get program(): string {
    return path.join(this.#bundle, 'holdfast.mjs');
  }

  get #bundle(): string {
    return path.join(this.directory, 'dist/test/bundles/server');
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #edit(file: string, changes: readonly [string, string][]): void {
    const at = path.join(this.directory, file);
    let text = readFileSync(at, 'utf8');
    for (const [from, to] of changes) {
      if (text.split(from).length !== 2) throw new Error(`${file} has not once: ${from}`);
      text = text.replace(from, to);
    }
    writeFileSync(at, text);
  }
}
