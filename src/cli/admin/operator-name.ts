import { userInfo } from 'node:os';

/** The system user who runs the command, for the audit log. */
export function operator(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user without a name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
