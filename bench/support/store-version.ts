import { randomUUID } from 'node:crypto';
import { type AppContext, createContext } from '../../src/shared/context.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createStackRepository } from '../../src/shared/stacks/stack-repository.ts';
import { recordEdit } from '../../src/shared/state/record-edit.ts';
import { DataFolder } from './footprint.ts';

/** Opens the stores of an embedded server beside it. */
export async function openStores(dataDir: string): Promise<AppContext> {
  const databaseUrl = await new DataFolder(dataDir).databaseUrl();
  const config = parseConfig({ HOLDFAST_DATABASE_URL: databaseUrl, HOLDFAST_DATA_DIR: dataDir });
  return createContext(config, { databaseUrl, masterKeys: null }, { logger: createLogger({ level: 'silent' }) });
}

/** Adds a version to a stack as an import does, without HTTP. Returns the SHA-256 of its text. */
export async function storeVersion(context: AppContext, stackId: string, text: Buffer): Promise<string> {
  const document = await context.documents.save(bytesOf(text));
  await context.db.inTransaction(async (tx) => {
    const stack = await createStackRepository(tx).lockById(stackId);
    if (!stack) throw new Error('The stack is gone');
    const record = { updateId: randomUUID(), kind: 'import', message: '', requestedBy: null } as const;
    await recordEdit(tx, stack, { ...record, state: { document, resourceCount: 0 } });
  });
  return document.sha256.toString('hex');
}
