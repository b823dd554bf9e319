export const webhookLabelTexts = {
  formats: {
    raw: 'JSON, signed',
    slack: 'Slack',
    ms_teams: 'Microsoft Teams',
    github_status: 'GitHub commit status',
    gitlab_status: 'GitLab commit status',
  },
  groups: {
    stacks: 'all stack and update events',
    deployments: 'drift',
    policies: 'policies (no events yet)',
    environments: 'environments (no events yet)',
    change_requests: 'change requests (no events yet)',
    holdfast: 'all queue, freeze and approval events',
  },
  allEvents: 'All events',
  states: { delivered: 'Delivered', failed: 'Failed', waiting: 'Waiting', skipped: 'Skipped' },
} as const;
