import { type EncodingShape, encodingShape, VersionEncoder } from '../../src/shared/checkpoints/version-encoder.ts';
import { createVersionRepository } from '../../src/shared/checkpoints/version-repository.ts';
import { encodeVersions } from '../../src/workers/maintenance/encode-versions.ts';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** Pieces of a few kB and chains of a few versions, so that small states show what large ones do. */
export const smallShape: EncodingShape = {
  keyEvery: 8,
  groupSize: 4,
  sizes: { min: 512, target: 1024, max: 4096 },
  minStoredBytes: 1,
};

export function createEncoder(app: TestApp, shape: Partial<EncodingShape> = smallShape): VersionEncoder {
  const versions = createVersionRepository(app.context.db);
  return new VersionEncoder({ ...app.context, versions }, { ...encodingShape, ...shape });
}

/** Makes all states due and encodes those that can be. Returns how many versions were encoded. */
export async function encodeAll(app: TestApp, shape: Partial<EncodingShape> = smallShape): Promise<number> {
  await query(app, "update checkpoints set encode_at = 'epoch' where codec <> 'pieces'");
  return encodeVersions(app.context, { encoder: createEncoder(app, shape) });
}
