import { useNavigate } from '@tanstack/react-router';
import { Building2, ChevronsUpDown } from 'lucide-react';
import styles from './organization-switch.module.css';
import { useMe } from './platform/app/me.ts';
import { sidebarTexts } from './platform/texts.tsx';
import { Button } from './platform/ui/button.tsx';
import { Menu, MenuItem, MenuSeparator } from './platform/ui/menu.tsx';

export function OrganizationSwitch({ organization }: { readonly organization: string | undefined }) {
  const me = useMe();
  const navigate = useNavigate();
  return (
    <Menu
      trigger={
        <Button className={styles['switch']}>
          <Building2 size={15} aria-hidden="true" />
          <span className="unseen">{sidebarTexts.organization}</span>
          <span className={styles['name']}>{organization ?? sidebarTexts.allOrganizations}</span>
          <ChevronsUpDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuItem isChosen={organization === undefined} onSelect={() => void navigate({ to: '/' })}>
        {sidebarTexts.allOrganizations}
      </MenuItem>
      <MenuSeparator />
      {me?.organizations.map(({ name }) => (
        <MenuItem
          key={name}
          isChosen={name === organization}
          onSelect={() => void navigate({ to: '/$organization', params: { organization: name } })}
        >
          {name}
        </MenuItem>
      ))}
    </Menu>
  );
}
