extension GuardrailProbe {
    /// Trained by Tests/Tools/train_probe.py on the prompts of Benchmarks/Answers/development by ten authors, a quarter of them unsafe. The
    /// thresholds let one of 2,000 ordinary requests pass for unsafe, each scored by a probe that was trained without its author.
    static let all = [
        // Qwen2.5 Coder 1.5B Instruct, Q4_K_M
        GuardrailProbe(
            fingerprint: "a8af0622d2358987", layers: [14, 18, 22], scale: 0.00149022, bias: -0.013349, threshold: 2.5,
            weights: """
                6P/l8yD9BvHZvf76APf3/P0b2uozD/v/AAgR4Rjr7fvqxvbyCAkFEg0VANvwEhsH9PAQCgoVDyzs6fkd3/YOCh3yFezq8982C/XrBuUC1Q0F7yEAEfwLER\
                YNB/wa/gjx+dURHAL0BA77Av4kCfEOAcnr/woa/AsM9QYGDwIAB+flCBER+QYF/CwN9wXs9x7w4s37EekN2fYBAd0D8xzZ6u0i4R4XCPT6FvwC5gL+++3c\
                D+UV7Af6/gIj0vYBGwXO/CENGfb/DOgFEf79ChjW7gMJ+f4Z8hHv6fD3FOAG5if3zOX0NAYOGPL3ARECQfQWHejbA+0J+fHs5S0AAskA/gzl/P3qHPzH+w\
                ce+v35Cfb30xHtCwIQAuzt1AvsHNj57eYK7eUfDd4PGuXyFBEKAgDiLuf0KCMB5N/348j1UOz28gUUFgYR/R4A9u0mJPkjE/Pkt98byRb1B+IhCBryCcr5\
                L9ULEvjn8xkg7hAaFNML3+js+h/qARLwz/sFA/cT4/7jG9z2BhXyCwoB7woc4f0X3/zyH/ILAeX+6+oFEAQH3ucgDdkBANsl4enaIvgIDPHYEwIvBfbxxe\
                4h2hz5++8Q4//u8Q4oEvILE/3x8dscHgvY7vrU6MQABRAfDiIDAhz9DwnvDe7pG9zzCSf1+P7/IAH8FAgNG/MI4PH/3fUICPkDDeMX5sz7DwPeEgDd9fLT\
                Je76EfgK7v34BxgT7wYL3wPcAcj8+fkGJOn8Eib4+QjrBQgDAgIY3Q8PCs4U9vDwEAP7DPzy3+4R+NoQDOYZ7P4T+BT1C+jm/wn5HBkSvhn3CAfSDgDa+B\
                T4OvE38AEJCwz3H8oWCxAwAdf5CPX28+rrDgAF89cOBvcXIg3+/BcQCynn5i/g8vsHEvjT4gkUERQVDAjj8RUi8x726ucW6RYW/uvpAt/36C0B3/T+BiLn\
                //j3CQrR4Q/yDwUQBhcYK9EH8hj2KP0aCtfv/e4KBvPZFdRB5xDnCegL3+4GCejm+vHz6AQHGQX49Psv4f4P8QD+CBsfEwP2+/UiE/ce+CMS8gUI+vz79w\
                fuAu8A3B301DoR997bFgoBC+Iq++jtJgfT/A/75+H97On9IP/WE/jx3xYCCgwSBgcQ7v7ZF/v0D/oG/gIOIRgAMe4cBdgLJrseAPAQ1CzT6QQa7Q/27vz1\
                +A8EEQfs+OsL2PQK7/3r8+wG+iXwAPoE+vgcAxn69eX4L+4dAf/i6ffz7R/+CfYc9u4b6/Xl/+rbA+MdFA/x6/32Je4MANAKAxv/DAvzGyLu59gI+BwC6g\
                3/7t8PE8QFD/QQCEAFDAn6BPoUAQMg/Ar1u+v58/4IEx4E9PwXHu3w8/sZ3x4bDOr3ACoG8u3M8h8D//UH7QEZJBsA9gXyDBMbHO0GNx0gBxDRA/AWDggD\
                EDHaIxDnExfQAPr3BwsQ8ucSAg4D7P7g2yIQG+4V9+78COHt6O4H2i0Z7AASGNMu9/r/Eu/+GRkmDvck5wrU9Nwa8fLj9PEYGiEMAPjuzxDgHf4U9xruDP\
                8i8LPGAw4oAwQH3AEhEOQM5y4a6s8RMf4j6ury9BET5ecC8yH5CPMG6PH98wYlACT16AUJF/vrDgPrMegEEBIICPgI7fn17hUCBOAI4Bs8/O7o/vgt+w35\
                DBno9BMOLQEAGv3PJOIG4f8K/eoZFO70B/gH3gvZ3hblB+rq7/zz9PwD/gbv/QYG/PcB3wEQ1fEw8Nc85B4P9ygi7f0L8u8Y+uvvH/cTAfXqFQ8M+vroCd\
                cA+O8p5iUF6OwRAhX9/PgF+BYJ9y4B4f8eHBMC+gf34dEMCQgFCQ0G9vnjDf0OHfzt/fbp3QsMDwwqDOEqz/4FCyj3+drw7gL5I+b98uXzBgYQ/wr38e3x\
                DN0ABQ8b5AOpHuUeGgfoBOLP/N4Q/AD8/wUZDATuJ+D+5/Ea3/LtAAFFL/QNGeH/9e7wCU/86ksA2wH949EYBB349/0HKwHoAfIAKvAfK+oC8x3q//3uDQ\
                oZBfoH+i/08fwlFfP86e8W7jMWDwkACB0TEvvf9gv5/BYGxgXXH+DUwB/z8vbp/woa0LcVD+LqNOfy7wn56wgI1vcjAePsOAUR9O4PHg7uIAgH/w/kBS7C\
                7ucf3PLxOSHrRujh4w4LFPMaIhkQ4yX15jYaGtgRCQTKFhEy3wIS6ejv9wgN0QLh5OkuBNb45gvlAw9A0w3yzBvW+jbnFvfUIzQa1QsKMzARADT5/SD0Gc\
                QCTar1yCXRBAgL6eYCBuoWCBEf6v0hDhEPGxPsDv65AwXtDAoK5Q/24v0mFAXgByrqBvn4GhH6Bf/4Afe+EcoC5gEHGt/x4PP49/kiEhkBDgDvK/gp6vgI\
                6EcQC/oSA/PdIvYSEePX/CEXDtIFrCf++EoB++Pw1+4THjAL8RYC+yr5Awfq6/f2DBwSLL/i1v8N9/0YLv/oGgHmCCYD9B7x4dz7IC8G7dn86dI9FvcJ9v\
                wG1/Xn/hQO29Mg4f4cAAD+xQIszOr/IQAv2grwIPnlQeQCEBIN8z3cEh4/HeEb3+LLFhbyEQ/1EB/RIf7+2gkZHMn0Euf1LjYBGxID1RMxKBbvJQfmCe/p\
                BPz00tQWEMYI7eEI+MIn9wD3+PPxvgbb/esuC+nk3v0G3A/t/RXm5+cdAPcf8RP89Bj8BtkGNSXU6Orr4ukAGdAQKgv+DQPkCwfaLfcjCBDv+hry6QkMGh\
                ch3xUUEhARx/D08uDWHf7yD/Tp5dsN/SzoG8gXHxbc6/vGHCrj8Dv9JeUD4/MCFxzFAusd++gRNvYMDDXZQtr7CdsGAufw+RMQE8TT/A8AMhT1CBn8/OI0\
                8uUV4yD9/R0ZAiLxJvK/9P41FgJFkgMrFgDqK/n06eEnOfn5Gwv8/hopJOj6BO4qG9rxDvYOJfXOJAzv+/YkFgMIQAHj+OUpGBPawicK3+7sFfXd5gcQ+B\
                P0IhWt6B4MAwfuvQkJ9DcBABHo9sjquBfzBAPoEhTK+d0NGPzx8dkbDPgVFykgGgUG8978EQYQMhgi9Oz7CQ2xEwggHxDzBg0gJyAL+fTzDvoC5uwGJP4f\
                9/oG2CAM8gMgwSNW8/AyBe8I4RgrBgIVEQ3iE/cKDzn46P3/8NgM00MpIPrd2Cff/srcIO3S9yHfBwf+NOoa5gzmBuTmBgEiFvIt8fvgzwYZ8h3kBR/mHO\
                Pk7gsSEBoGBgYV+M72G7nl+/fm9wjW4ygH7hX3FQAv6iAH9CTiG/390BMPMOnTu/bs4v7y4wwwEt4KCQrk/tEYKOoA5gfc2un2GgPU5BcvHAUT9zbiE70X\
                Lv33LQLu8N8N9cQBEeEfGQQm9icXF0gSCNQJJTDp5RRV599OSfcDGPcg9fgBFdYK/vsFBQECBuIQrxTzHgm+FSvgCRcZ+977+BQL+BkY5gjTSQ76/hTmFj\
                EF6fnr1uIOGhPzDhQO/A49IQb5Lf4UDNz05+7z4OAB7gDvG/3yHyTtEt0ABBAOHwf+AR4C3MEkFir86esV2jE33wQh6P4XykEK1ugQ6+gg/90J+P0BJDIg\
                APP/3uzCx/b5BPYVDxYc8QgH/gX1+BHyFQ8Kyf4QFxgow8LmERsnAwoDEMoqQe0ZDRUcAdNjKAwHB8DvDSH8xNwnADP44d4G/OIP/QtJ+A/iIEcDFQsPBh\
                kN9fDzUvoMAwY29PLy+gIJ77bfBNwdJQMT+g8C9Pb+HhX41O8Q+izrE/7nJ9INMQz35w338srSFfcLMinm/S/85PP46Q4cA/flGE7SFwTs9O5MIzz1xwLt\
                7e8v0Pnq5An/C/MP+ur8DRcaHxDgBh/0Nf0L8/HbJxQh2gDjCxEY8wr47usHGiP7Kg8N3RYF3wAD9RYmAQ77JrHyAQX2CgYK9w//7wIpFvkD2AcDxRvp8g\
                7/DssZ7/fo/hT9zPPZ6uwK4wrIABQW+An6+v0A2cT9Fvrb/OghBOWDRRNBBgEHCvrX6uYC29cfEQcvJQPlyRXg7+L88vfUxOVLI/0i/fIf+ODiBhbyEyMJ\
                r/gOEtT4CQHqBiD+2vjp5/9ACgUM6P/vEP3xQQXULe0AOwACD+nj7BUpHwzV5RMCIEAdDf4FU/gQ6vDVHdwZ4BTh3inz/jQqCwjuJ9C0C6HN5c8c8/nt9i\
                MPETTb5g/rCgn//jMUWR70Fu3kSxAX2iPh9RvbFQML9wkJ+fv3JyglCOoX6uoQBfMSPPEBBNEz/jvjPhToB8TnPt/bVPX1Awv5wgThDwxA/vwc6A8O3RTt\
                xPf7CfoZ7vDZ7y8E9/L2LC4VHtf/+wsSGREWH2gOzp7WEfrjCDnv6g7TWPsA7hAw5xzl4wcJ1ucsD93/8gDEB/3u8d/w9P7MEcEg+w3YH0UrGQwO0RDx8w\
                gHIy35HAYIFxc4Jv7yCfH3sRD8G04WASUQB+4KCu4JBVMMAf31uMXaE+oZDukPIAD2BOX4qm786fMLCgv58gM6FEgI2tAsGlL/Gf7aBBwG/R3oG7v61//8\
                Vf7gGAELEdgG9eLeJ9ri/ePeLgAtCRTr+cIc9xk4HvzozObsJBET2Pn3IAbYDAzQ9AIUDf0i/xEx2M74ETHWBR4rviYZ6vPX/eDcHv0XMhH37wUMNQXJ+S\
                INDhJC8Qg6/M0b5Qfq6Qsd3toe5F8oMiIOARLqCPbjOkH4FuLt/KfaycH29rkfJ+jv0/3pGgrgQUAX6AjfAu4lvQgA5wYPIuQuHSD/NQwYsQ8G3wILNm4T\
                6wgx4Nrt2d4IAPj4FiXfFCPj6+sQ5gP3/xvZDxby9BAXBg1F7xu2yQIW894b/+kTKwgI9Mw89ggvJgDq2dLG3SHouzscFvroQOnu2A8SI8vdFNIbFRv39h\
                joHxoFHPXw+CECHrf2/SECDve+MwPwCxoBvwbyuPcX9+Pz9jc66Ssh1uP+C/8TCS70FRI3IkI/DgMHTtr3x9EbIt/r9ydH7PwmDQLy2djqA6oQD/cD6AEC\
                EQ0fnvgMA8/s7+Pw30LpLQ4H4RocBwvkEAmj39UREBc9w83aCsr+598R/Kf0AywE7AEE9xa5B1f1F/X39iDG490O6yYC/xEREgX/Ygj5KpT+LSgR3iMAEv\
                YeuQP+DfnvMPAdEt7w8csGwSdpCeAdOB3YA/D37vnrvOQ88/339g/03+4SKgz0EeMYrjUAMxPqHufPAfAUM43U8+430PQW9hMsEhC94RYROCEd7xCX1ci/\
                0RYUL/X49AAWziTE+vhC++DvHPoqLR074xvfGUro2pcBAg/9/VskEgH+FeXiVyks0QXC6iHs5RPl6vPpI/Uh+QbpGL76+h3o+/oaC8/XsS4SDhLuEBoQ8O\
                3/By3e4SQT7gr21dbp5O3X1ebl6wA/G9/l4PC80sD1L9kMJPn3DuclJdz0LcAZKc4p2T8j7Q0F5Pv0PAhZJf4N4PgPwvTu8zgFDPNcAv7n/gImutLkMhkI\
                zRAECCIqCwHg4wXcvunDBgQA+078GWrKHe0t5uru9v/58/TKpQLHFRIm+zI7BAMvRO7wVRrf+cblo9AMG7gz6tc8HBACIScKQwQC5dn37wrO8kAWE/bt7D\
                X84QYS10ETFePi6Lrm4zwL0uToOwTtCc/6FQobAdcnEg38svMIxLwwGNzW8x/jEv/hEPUf2PbP+e0brTALORzs7u0c9/QaEOkC7uDw+gXhJFlzxSMkGRcd\
                Fc3o6Oz01hPv4THRLNL0BAgvORkcBn/0Tug0NwfVMlHyDQj9ITEKJgbS9Nm498oSDg0YTPnx6QMO6Af/5jwODPwX+OQ+7NPaPevqH/712gjTTfcGGdDv7i\
                gSVyDt/AoYHt7tDzvk0uT9Cvng68vLQOr4K0323/Dr6PXiGAnp3vIBIeHy7+cY//4K6f/xFQwANAsK+OMBHAT/9w/M8/0q/Pj0KQQQ+BLXEwsf9tUQJgRO\
                6vrHLeYULpsR4QL2XgAU+d4XxgkxxwslvMYF4AoT8woE/AP3Avm5CiMe3isR6+kLt+7yER7p2ynJyiz5/9IGEuwl6Smy1PXL/MD+7grgEQLV+fTsDNQIFA\
                f0Fz6v7vIDFD7A6SLhDAV1B9wD+0AKOfrkFf7/7xPj+NH79sTyCdIA7MO+0/suKwDx2w36CBn+MxXh++Ds8vTT+8TmMCMa6yX1GDbN5TTv5k4oKeoK3wvK\
                Ebj4EjAW
                """),
        // SmolLM2 135M Instruct, Q4_1
        GuardrailProbe(
            fingerprint: "29c947167a0d71b7", layers: [16], readsSchemas: false, scale: 0.00942874, bias: -12.379, threshold: 1.79,
            weights: """
                oyrlBsztAkAFHUElD/7w5eLe3+vPv+D5+wj67SQi++8gsfIH/kQq4CRDEzwWH/rn7/bW6gYJ/y7CFQbrA+f6DRnvKPYK/y0R9UEqKMfk/draCzcw69\
                kU294DygncF/gT8vz0Q+XP9xHRRyowE/3twvrgIwn9HRBJCfvxy7cTIcvR9uj3CN8IHj8lxyHN9g5iDAB4sOP/6N3x8PMfxw04AQbROSnpHBNb6hAM\
                FR0pCbnx0jCB1OC8Pw759iJlAA8apNL7LQIbGw7rBCsxIgXWBRLN5OY+IiL8CxboGB3WAOH7IAkYBxoSuxEQ6/3F0D8dycn3//ch/O4BR/YM4RHt3e\
                sK797V/fT9Lu4dQPUV9t0L6eseL95KWOQXDwMVMegL6NnqBPgLBu/kMhdBH+wcJR4v2+AJQ+HqGuYN6fIHEfQmGDK98+nt/gLK8Tn8UkbjCiMO+gXV\
                6NwMuQIR6/nz8QT+M0zkSRXfDvDhO8DbwRXS/OwY5PEqEyC6COhNKe7b7fTX+jBcB9gENtEiBOXzFgry4uftxcn9m9n9ReMf/8MAzB8hCwU4D/Sl4/\
                bcGMH/OSIvD703q/0CFCUaSe8F+f/rBvP2+M/25PDuC//d0uv67/w6BscwxUnz1RMR7+wK7gEZzNgZ5SIl6r39GEMM9Osb3yal4e/UGCnK9ebt3/4K\
                9ifpputVzN74jL0dA+Ag7yQV2U3c4PlS/f423wMgPeUsFvc4IzQr/OoC9v4IEPb97fTcEyzn7wY+ERjbNb7l
                """),
    ]
}
