import { createContext } from '../../src/shared/context.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';

// Deletes slowly, so that a test can kill the process.

const config = parseConfig(process.env);
const databaseUrl = process.env['HOLDFAST_DATABASE_URL'] ?? '';
const context = await createContext(config, { databaseUrl, masterKeys: null });
await createStackDeletion(context, { batchRows: 10, pauseMs: 5, runMs: 600_000 })();
await context.lifecycle.close();
