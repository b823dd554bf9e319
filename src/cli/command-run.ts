import type { Config } from '../shared/platform/config/config.ts';

/** Shared by all commands of one run. */
export interface CommandRun {
  /** Reads the settings; not needed to print help. Throws ConfigError. */
  loadConfig(): Config;
  /** Exit code if no error is thrown; undefined if the process continues as a server. */
  exitCode: number | undefined;
  /** See commandsOfFencedSite. */
  isForFencedSite?: boolean;
}
