import type { Config } from '../shared/platform/config/config.ts';

/** What the commands have in common. */
export interface CommandRun {
  /** Reads the settings; commands that only print their help need none. Throws ConfigError. */
  loadConfig(): Config;
  /** The exit code when no error is thrown; undefined when the process goes on to serve. */
  exitCode: number | undefined;
}
