import { useMutation } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import type { IssuerDetails } from '../../platform/app/procedure-types.ts';
import styles from '../../platform/app/settings-page.module.css';
import { TeamField } from '../../platform/app/suggest-fields.tsx';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit } from '../../platform/app/use-edit.ts';
import { Button } from '../../platform/ui/button.tsx';
import { CheckboxField, SelectField, TextArea, TextField } from '../../platform/ui/field.tsx';
import { policyDialogTexts, policyRuleTexts } from '../texts.tsx';
import { areWhole, newScope } from '../tokens/scopes.ts';
import { ScopesField } from '../tokens/scopes-field.tsx';
import { decided, draftOf, draftToSent, isReady, type Policy, type PolicyDraft, toSent } from './policy-form.ts';

const kinds = [
  ['organization', policyDialogTexts.organizationToken],
  ['team', policyDialogTexts.teamToken],
  ['service', policyDialogTexts.serviceToken],
  ['personal', policyDialogTexts.personalToken],
] as const;
const deniedKinds = [['any', policyDialogTexts.anyToken], ...kinds] as const;

/** If another user has changed or removed the policy meanwhile, it counts as a different policy, and the draft is added as a new one. */
export function PolicyDialog({
  details,
  onClose,
  organization,
  policy,
}: {
  readonly organization: string;
  readonly details: IssuerDetails;
  /** Null for a new policy. */
  readonly policy: Policy | null;
  readonly onClose: () => void;
}) {
  const { base, change, dialog, draft } = useEdit<IssuerDetails, PolicyDraft>({
    item: details,
    draftOf: ({ policies }) => draftOf(policies.find(({ id }) => id === policy?.id) ?? policy),
    read: () => apiClient.issuers.get.query({ organization, id: details.issuer.id }),
  });
  const { issuer, policies, version } = base;
  const set = useMutation(trpc.issuers.setPolicies.mutationOptions(thenRefresh(onClose)));
  const isAllowed = draft.decision === 'allow';
  const needsScopes = isAllowed && draft.tokenType === 'service';
  const scopes = isAllowed ? (draft.scopes ?? (needsScopes ? [newScope] : null)) : null;
  const sent = draftToSent({ ...draft, scopes });
  const isThere = policies.some(({ id }) => id === policy?.id);
  const next = !isThere
    ? [...policies.map(toSent), sent]
    : policies.map((each) => (each.id === policy?.id ? sent : toSent(each)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Issuer', object: issuer.id }}
      title={policy === null ? policyDialogTexts.addTitle(issuer.name) : policyDialogTexts.editTitle(issuer.name)}
      description={policy === null ? policyDialogTexts.addLead : policyDialogTexts.editLead}
      action={isThere ? policyDialogTexts.save : policyDialogTexts.addAction}
      isDanger={policy !== null}
      {...dialog(set)}
      isReady={isReady(draft) && (scopes === null || areWhole(scopes))}
      onSubmit={() => set.mutate({ organization, id: issuer.id, version, policies: next })}
      onClose={onClose}
    >
      <div className={styles['row']}>
        <SelectField
          label={policyDialogTexts.decision}
          value={draft.decision}
          options={[
            ['allow', policyDialogTexts.allow],
            ['deny', policyDialogTexts.deny],
          ]}
          onChange={({ target }) => change(decided(draft, target.value as 'allow' | 'deny'))}
        />
        <div className={styles['grow']}>
          <SelectField
            label={isAllowed ? policyDialogTexts.allowedTokens : policyDialogTexts.deniedTokens}
            value={draft.tokenType}
            options={isAllowed ? kinds : deniedKinds}
            onChange={({ target }) => change({ tokenType: target.value })}
          />
        </div>
      </div>
      <Owner organization={organization} draft={draft} onChange={change} />
      <Rules draft={draft} onChange={change} />
      {isAllowed && draft.tokenType === 'organization' ? (
        <CheckboxField
          label={policyDialogTexts.admin}
          checked={draft.isAdmin}
          onChange={({ target }) => change({ isAdmin: target.checked })}
        />
      ) : null}
      {isAllowed && !needsScopes ? (
        <CheckboxField
          label={policyDialogTexts.limit}
          checked={draft.scopes !== null}
          onChange={({ target }) => change({ scopes: target.checked ? [newScope] : null })}
        />
      ) : null}
      {scopes === null ? null : <ScopesField scopes={scopes} onChange={(changed) => change({ scopes: changed })} />}
      {isAllowed ? (
        <TextField
          label={policyDialogTexts.lifetime}
          value={draft.life}
          inputMode="numeric"
          maxLength={6}
          placeholder={policyDialogTexts.sameAsIssuer}
          onChange={({ target }) => change({ life: target.value.trim() })}
        />
      ) : null}
    </ManagedDialog>
  );
}

interface PartProps {
  readonly draft: PolicyDraft;
  readonly onChange: (part: Partial<PolicyDraft>) => void;
}

function Owner({
  draft: { decision, owner, tokenType },
  onChange,
  organization,
}: PartProps & { readonly organization: string }) {
  if (tokenType !== 'team' && tokenType !== 'personal') return null;
  const isTeam = tokenType === 'team';
  const hint = isTeam ? undefined : policyDialogTexts.loginHint;
  const field = {
    label: isTeam ? policyDialogTexts.teamName : policyDialogTexts.login,
    value: owner,
    maxLength: 100,
    required: decision === 'allow',
    placeholder: decision === 'deny' ? policyDialogTexts.any : undefined,
    ...(hint === undefined ? {} : { hint }),
  };
  return isTeam ? (
    <TeamField {...field} organization={organization} onChange={(value) => onChange({ owner: value })} />
  ) : (
    <TextField {...field} onChange={({ target }) => onChange({ owner: target.value })} />
  );
}

function Rules({ draft: { rules }, onChange }: PartProps) {
  const change = (at: number, part: Partial<(typeof rules)[number]>) =>
    onChange({ rules: rules.map((rule, index) => (index === at ? { ...rule, ...part } : rule)) });
  return (
    <fieldset className={styles['group']}>
      <legend>{policyRuleTexts.allMustMatch}</legend>
      {rules.map((rule, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the index is what identifies a rule.
        <div key={at} className={styles['row']}>
          <div className={styles['grow']}>
            <TextField
              label={policyRuleTexts.claim}
              value={rule.claim}
              maxLength={200}
              required
              onChange={({ target }) => change(at, { claim: target.value })}
            />
          </div>
          <div className={styles['grow']}>
            <TextArea
              label={policyRuleTexts.patterns}
              rows={Math.max(1, rule.patterns.split('\n').length)}
              value={rule.patterns}
              required
              placeholder={policyRuleTexts.patternsExample}
              onChange={({ target }) => change(at, { patterns: target.value })}
            />
          </div>
          {rules.length === 1 ? null : (
            <Button
              kind="quiet"
              size="icon"
              aria-label={policyRuleTexts.remove(rule.claim)}
              onClick={() => onChange({ rules: rules.filter((each) => each !== rule) })}
            >
              <X size={16} />
            </Button>
          )}
        </div>
      ))}
      <Button
        size="small"
        className={styles['start']}
        onClick={() => onChange({ rules: [...rules, { claim: '', patterns: '' }] })}
      >
        <Plus size={14} aria-hidden="true" />
        {policyRuleTexts.add}
      </Button>
    </fieldset>
  );
}
