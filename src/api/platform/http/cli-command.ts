/** Since May 2026, the CLI sends its command after its version and operating system (pkg/backend/httpstate/client/api.go). */
const pattern = /^pulumi-cli\/1 \([^()]*; cmd=([^;)]*)[;)]/;

export function isCliCommand(command: string, headers: { readonly 'user-agent'?: string | undefined }): boolean {
  return pattern.exec(headers['user-agent'] ?? '')?.[1] === command;
}
