import { LabIcon } from '@jupyterlab/ui-components';
import { logoSvg } from '../run/logo';

export const cutegenIcon = new LabIcon({ name: 'cutegen-lab:logo', svgstr: logoSvg() });
