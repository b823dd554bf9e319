/** A separate file: the first page shows the status of updates, and nothing else about them. */
export const updateStatusTexts = {
  statuses: {
    'not started': 'Waiting',
    running: 'Running',
    succeeded: 'Succeeded',
    failed: 'Failed',
    cancelled: 'Cancelled',
  },
  kinds: {
    update: 'Update',
    preview: 'Preview',
    refresh: 'Refresh',
    destroy: 'Destroy',
    import: 'Import',
    'resource-import': 'Import',
    rename: 'Rename',
  },
  previewOf: (kind: string) => `Preview of ${kind.toLowerCase()}`,
  endReasons: {
    'lease-expired': 'Its CLI stopped renewing the lease, so it lost the lock',
    'token-revoked': 'Its API token was revoked while it ran',
    'token-expired': 'Its API token expired while it ran',
    'user-deactivated': 'The user who started it was deactivated while it ran',
    'membership-ended': 'The user who started it may no longer update stacks of this organization',
    'grant-ended': 'Its token may no longer update this stack',
    'time-limit': 'It reached the maximum duration of an update',
    'database-restored':
      'The server’s database was restored or failed over and may lack saved state: run `pulumi state repair`, then `pulumi refresh`',
  },
  otherEnd: (reason: string) => `Ended: ${reason.replaceAll('-', ' ')}`,
} as const;
