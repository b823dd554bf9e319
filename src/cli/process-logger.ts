import type { Config } from '../shared/platform/config/config.ts';
import { createLogger, type Logger } from '../shared/platform/logger/logger.ts';

/** Creates the logger of the process, and logs the variables that are ignored as settings. */
export function createProcessLogger({ ignoredVariables: variables, logLevel }: Config): Logger {
  const logger = createLogger({ level: logLevel });
  if (variables.length > 0) logger.info({ variables }, 'ignored: variables that Kubernetes sets for services');
  return logger;
}
